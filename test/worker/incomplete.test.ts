import assert from 'node:assert/strict';
import { BackfillFailed, type BackfillHandle } from '../../src/client.js';
import { type Bed, makeBed } from '../support/bed.js';
import { eventsOf, failedTasks } from '../workflows/scripted.js';

const RANGE = { from: '2024-01-01', to: '2024-04-09' };
/** The 37th of the hundred days from 1 January 2024. */
const BAD = '2024-02-06';

describe('a backfill of which one day always fails', () => {
  let bed: Bed;

  before(async () => {
    bed = await makeBed();
    await bed.worker();
    await bed.database.sql(`ALTER TABLE daily ADD CONSTRAINT not_that_day CHECK (day <> '${BAD}')`);
  });
  after(() => bed.close());

  async function failed(handle: BackfillHandle): Promise<BackfillFailed> {
    const error: unknown = await handle.result().then(
      () => assert.fail('it did not fail'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof BackfillFailed, String(error));
    return error;
  }

  it('fills the other 99 and says which is missing', async () => {
    const handle = await bed.client.backfill({ pipeline: bed.pipeline, ...RANGE, concurrency: 10 });
    const { type, message, result } = await failed(handle);
    assert.equal(type, 'BackfillIncomplete');
    assert.match(message, new RegExp(`1 of 100 .*${BAD}`));
    assert.deepEqual([result?.total, result?.filled, result?.failed, result?.rows], [100, 99, 1, 99]);
    assert.equal(result?.failures.length, 1);
    assert.equal(result?.failures[0]?.key, BAD);
    assert.equal(result?.failures[0]?.type, 'DataError');
    assert.match(result?.failures[0]?.message ?? '', /not_that_day/);
    assert.deepEqual(failedTasks(await eventsOf(bed.client.temporal.workflow.getHandle(handle.id))), []);
    const failures = await bed.database.sql('SELECT key, type, attempt FROM repave.failure');
    assert.deepEqual(failures, [{ key: BAD, type: 'DataError', attempt: 1 }]);
    const states = await bed.database.sql('SELECT outcome, count(*)::int FROM repave.partition GROUP BY 1 ORDER BY 1');
    assert.deepEqual(states, [
      { outcome: 'failed', count: 1 },
      { outcome: 'filled', count: 99 },
    ]);
    const backfills = await bed.database.sql('SELECT outcome, filled::int, failed::int FROM repave.backfill');
    assert.deepEqual(backfills, [{ outcome: 'incomplete', filled: 99, failed: 1 }]);
  }).timeout(300_000);

  it('run again with only: ["failed"], does that one day and leaves the rest untouched', async () => {
    const before = await bed.database.sql('SELECT day::text, xmin::text FROM daily ORDER BY day');
    await bed.database.sql('ALTER TABLE daily DROP CONSTRAINT not_that_day');
    const handle = await bed.client.backfill({ pipeline: bed.pipeline, ...RANGE, only: ['failed'] });
    assert.equal(handle.id, `backfill/${bed.pipeline}/${RANGE.from}..${RANGE.to}+failed`);
    const result = await handle.result();
    assert.deepEqual([result.total, result.filled, result.failed], [1, 1, 0]);
    const after = await bed.database.sql('SELECT day::text, xmin::text FROM daily ORDER BY day');
    assert.deepEqual(
      after.filter(({ day }) => day !== BAD),
      before,
    );
    assert.equal(after.length, 100);
  });

  it('run once more with only: ["missing", "failed"], has nothing to do', async () => {
    const handle = await bed.client.backfill({ pipeline: bed.pipeline, ...RANGE, only: ['missing', 'failed'] });
    const result = await handle.result();
    assert.deepEqual([result.total, result.filled], [0, 0]);
  });

  it('takes a list that no range says page by page', async () => {
    await bed.database.sql(`DELETE FROM repave.partition WHERE key IN ('2024-01-03', '2024-01-05', '2024-03-01')`);
    const handle = await bed.client.backfill({
      pipeline: bed.pipeline,
      ...RANGE,
      only: ['missing'],
      order: 'newest-first',
    });
    assert.equal((await handle.result()).filled, 3);
    const listed = await bed.database.sql('SELECT key FROM repave.run_key WHERE run = $1 ORDER BY seq', [handle.runId]);
    assert.deepEqual(
      listed.map(({ key }) => key as string),
      ['2024-03-01', '2024-01-05', '2024-01-03'],
    );
  });
});
