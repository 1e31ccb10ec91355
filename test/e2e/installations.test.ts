import assert from 'node:assert/strict';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { temporal } from './temporal-cli.js';

const PIPELINE = `-- repave
-- target: target
-- partition: { column: day, by: day }
SELECT :date AS day, number FROM held(:key) CROSS JOIN generate_series(1, 10) AS number
`;
const TABLES = 'CREATE TABLE target (day date NOT NULL, number int NOT NULL);';

describe('two installations on one task queue', function () {
  this.timeout(180_000);
  const name = 'two_installations';
  let one: Installation;
  let two: Installation;

  before(async () => {
    one = await Installation.open({ pipelines: { [`${name}.sql`]: PIPELINE }, tables: TABLES });
    two = await Installation.open({
      pipelines: { [`${name}.sql`]: PIPELINE },
      tables: TABLES,
      taskQueue: one.taskQueue,
    });
    // Test databases are clones of one template, ledger's id included.
    await two.database.sql('UPDATE repave.ledger SET id = gen_random_uuid()');
  });
  after(() => Promise.all([one.close(), two.close()]));

  it('hold each other up, and never write for each other', async () => {
    await one.hold();
    // One slot: the second day can go to the other installation alone.
    await one.startWorker({ env: { REPAVE_FILLS: '1' } });
    const handle = await one.client.backfill({ pipeline: name, from: '2024-03-01', to: '2024-03-02', concurrency: 2 });
    const [held] = await one.heldFills();
    const refused = held?.key === '2024-03-01' ? '2024-03-02' : '2024-03-01';
    const stranger = await two.startWorker();
    const failure = await until('the stranger’s refusal', async () => {
      const { raw } = await one.temporal.workflow.getHandle(`${name}/${refused}`).describe();
      return raw.pendingActivities?.[0]?.lastFailure ?? undefined;
    });
    assert.equal(failure.applicationFailureInfo?.type, 'WrongLedger');
    assert.equal(failure.applicationFailureInfo.nonRetryable, false);
    assert.equal(await stranger.stop(), 0);
    await one.release();
    assert.equal((await handle.result()).filled, 2);
    assert.deepEqual(await rows(one), [{ rows: 20, fills: 2, claims: 0 }]);
    assert.deepEqual(await rows(two), [{ rows: 0, fills: 0, claims: 0 }]);
  });

  const rows = ({ database }: Installation) =>
    database.sql(`SELECT (SELECT count(*)::int FROM target) AS rows, (SELECT count(*)::int FROM repave.fill) AS fills,
                         (SELECT count(*)::int FROM repave.claim) AS claims`);
});

describe('a fill that is reset in the middle of SQL', function () {
  this.timeout(180_000);
  const name = 'reset';
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({ pipelines: { [`${name}.sql`]: PIPELINE }, tables: TABLES });
    await installation.startWorker();
  });
  after(() => installation.close());

  it('is filled once', async () => {
    const key = '2024-03-01';
    await installation.hold();
    const handle = await installation.client.partition({ pipeline: name, key });
    const [first] = await installation.heldFills();
    const { raw } = await installation.temporal.workflow.getHandle(handle.id).describe();
    const activity = raw.pendingActivities?.[0]?.activityId ?? '';
    const words = ['activity', 'reset', '--workflow-id', handle.id, '--activity-id', activity];
    const reset = await temporal(installation.namespace, ...words);
    assert.equal(reset.code, 0, reset.stderr);
    const again = await until('the attempt that begins anew', async () =>
      (await installation.heldFills()).find(({ fence }) => fence > (first?.fence ?? 0)),
    );
    assert.notEqual(again.pid, first?.pid);
    await installation.release();
    assert.equal((await handle.result()).rows, 10);
    assert.deepEqual(
      await installation.database.sql(
        `SELECT f.fence = ${again.fence} AS newest, (SELECT count(*)::int FROM target) AS rows FROM repave.fill f`,
      ),
      [{ newest: true, rows: 10 }],
    );
    assert.deepEqual(await installation.leftBehind(), []);
  });
});
