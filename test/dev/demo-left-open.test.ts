import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cancelLeftOpen, leftOpen } from '../../src/dev/demo-left-open.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { createNamespace } from '../e2e/temporal-cli.js';

const PIPELINE = `demo_${randomBytes(4).toString('hex')}`;
const file = (version: number): string => `-- repave
-- target: demo
-- partition: { column: day, by: day }
-- version: ${version}
SELECT :date AS day, ${version} AS version FROM held(:key)
`;
const GOES_ON = { pipeline: PIPELINE, from: '2024-01-01', to: '2024-01-03' } as const;

describe('what a demo that was killed has left open', function () {
  this.timeout(300_000);
  let installation: Installation;
  let database: Database;

  before(async () => {
    installation = await Installation.open({
      pipelines: { [`${PIPELINE}.sql`]: file(1) },
      tables: 'CREATE TABLE demo (day date NOT NULL, version int NOT NULL)',
      // Its server has no backfills but its own.
      namespace: await createNamespace(),
    });
    database = await openDatabase(installation.database.url, { fills: 1 });
  });
  after(async () => {
    await database.close();
    await installation.close();
  });

  it('is cancelled: what was planned by a version that is gone, what no worker had begun, and not the fill of every date', async () => {
    const { client, project } = installation;
    const keys = (...dates: string[]) => client.backfill({ pipeline: PIPELINE, keys: dates });
    // The next demo ends the worker that a killed one has left.
    const worker = await installation.startWorker({ env: { REPAVE_SHUTDOWN_GRACE: '1' } });
    await installation.hold();
    const planned = await keys('2024-01-02');
    await installation.heldFills(1, PIPELINE);
    await worker.stop();
    const unbegun = await keys('2024-01-03');
    const whole = await client.backfill(GOES_ON);
    // Temporal's list lags a little behind what was just started.
    const open = await until('three that are open', async () => {
      const ids = await leftOpen(client, database, PIPELINE);
      return ids.length === 3 && ids;
    });
    assert.deepEqual(open.sort(), [planned.id, unbegun.id, whole.id].sort());

    await installation.release();
    writeFileSync(join(project, 'pipelines', `${PIPELINE}.sql`), file(2));
    await installation.startWorker();
    const said: string[] = [];
    await cancelLeftOpen(client, database, GOES_ON, (line) => said.push(line));
    assert.ok(said.join().includes(planned.id), said.join());
    assert.ok(!said.join().includes(`${whole.id}.`), said.join());
    await assert.rejects(planned.result(), { type: 'Cancelled' });

    const { filled } = await whole.result();
    assert.equal(filled, 3);
    const rows = await installation.database.sql('SELECT day::text, version FROM demo ORDER BY day');
    assert.deepEqual(
      rows,
      ['2024-01-01', '2024-01-02', '2024-01-03'].map((day) => ({ day, version: 2 })),
    );
    assert.deepEqual(await leftOpen(client, database, PIPELINE), []);
  });

  it('is nothing that has ended, unknown to the ledger, or is gone from Temporal', async () => {
    const { client } = installation;
    await installation.hold();
    const terminated = await client.backfill({ pipeline: PIPELINE, keys: ['2024-02-01'] });
    await installation.heldFills(1, PIPELINE);
    await client.temporal.workflow.getHandle(terminated.id).terminate();
    await installation.release();
    await installation.database.sql(
      `INSERT INTO repave.backfill (run, id, pipeline, input, total) VALUES ('gone', 'backfill/gone', $1, '{}', 1)`,
      [PIPELINE],
    );
    assert.deepEqual(await leftOpen(client, database, PIPELINE), []);
  });
});
