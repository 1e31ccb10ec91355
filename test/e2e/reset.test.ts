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

describe('a fill that is reset in the middle of SQL', function () {
  this.timeout(300_000);
  const name = 'reset';
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({ pipelines: { [`${name}.sql`]: PIPELINE }, tables: TABLES });
    await installation.startWorker();
  });
  after(() => installation.close());

  it('is filled once, though its attempts are counted anew', async () => {
    const key = '2024-03-01';
    await installation.hold();
    const handle = await installation.client.partition({ pipeline: name, key });
    const described = async () => {
      const { raw } = await installation.temporal.workflow.getHandle(handle.id).describe();
      return raw.pendingActivities?.[0];
    };
    let fence = 0;
    /** The fill of an attempt that is newer than the last. */
    const next = () =>
      until('the next attempt', async () => (await installation.heldFills()).find((fill) => fill.fence > fence));
    for (const attempt of [1, 2]) {
      const fill = await next();
      fence = fill.fence;
      // At least: a busy machine may cost a try of its own.
      assert.ok(((await described())?.attempt ?? 0) >= attempt);
      await installation.look('SELECT pg_terminate_backend($1)', [fill.pid]);
    }
    const third = await next();
    fence = third.fence;
    const attempts = (await described())?.attempt ?? 0;
    assert.ok(attempts >= 3, `attempt ${attempts}`);

    const activity = (await described())?.activityId ?? '';
    const words = ['activity', 'reset', '--workflow-id', handle.id, '--activity-id', activity];
    const reset = await temporal(installation.namespace, ...words);
    assert.equal(reset.code, 0, reset.stderr);
    const again = await next();
    assert.notEqual(again.pid, third.pid);
    const anew = (await described())?.attempt ?? 0;
    assert.ok(anew > 0 && anew < attempts, `attempt ${anew} comes after ${attempts}`);
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
