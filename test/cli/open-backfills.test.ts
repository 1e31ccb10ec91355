import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connectRepave } from '../../src/client.js';
import { openBackfills } from '../../src/cli/open-backfills.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { beginBackfill } from '../../src/warehouse/backfills.js';
import { createTestDatabase } from '../support/database.js';
import { withWorker } from '../support/fill.js';
import { testTemporal } from '../support/temporal.js';
import { uniqueQueue } from '../support/workflow.js';

it('a backfill that runs is found by its pipeline, however many were begun and have ended since', async () => {
  const pipeline = `daily_${randomBytes(4).toString('hex')}`;
  const id = `by-another-system/${pipeline}`;
  const database = await createTestDatabase();
  const env = { ...onlyThisServer((await testTemporal()).address), DATABASE_URL: database.url };
  const settings = loadSettings(env);
  const repave = await connectRepave({ settings, taskQueue: uniqueQueue() });
  try {
    // Without the memo of our own client, Temporal's list does not say which pipeline it fills.
    const args = [{ pipeline, last: 3 }];
    const { taskQueue, temporal } = repave;
    const run = await temporal.workflow.start('backfill', { taskQueue, workflowId: id, args });
    await withWorker(database, (worker) =>
      beginBackfill(worker, { run: run.firstExecutionRunId, id, pipeline, input: {}, total: 3 }),
    );
    await database.sql(
      `INSERT INTO repave.backfill (run, id, pipeline, input, total, outcome, ended_at)
       SELECT 'r' || n, 'b' || n, $1, '{}', 1, 'done', clock_timestamp() FROM generate_series(1, 60) n`,
      [pipeline],
    );
    assert.deepEqual((await openBackfills(settings, repave, pipeline)).ids, [id]);
    await run.terminate();
    assert.deepEqual((await openBackfills(settings, repave, pipeline)).ids, []);
  } finally {
    await repave.close();
    await database.drop();
  }
});
