import assert from 'node:assert/strict';
import { atOnce } from '../chaos/at-once.js';
import { BackfillFailed, type BackfillHandle } from '../../src/client.js';
import { partitionWorkflowId } from '../../src/contract.js';
import { type Bed, makeBed } from '../support/bed.js';
import type { WorkerProcess } from '../support/worker.js';
import { until } from '../workflows/scripted.js';

const [FIRST, SECOND] = ['2024-01-01', '2024-01-02'];

/** A backfill of ten days whose first two fills stand in the middle of their INSERT. */
interface Running {
  readonly bed: Bed;
  readonly worker: WorkerProcess;
  readonly handle: BackfillHandle;
  /** Of the two. */
  readonly runs: readonly string[];
}

describe('cancelling a backfill in the middle of its SQL', function () {
  this.timeout(600_000);

  atOnce({
    'waits for the rollback': () =>
      inTheMiddle(async (running) => {
        await running.handle.cancel();
        await endsClean(running);
      }),

    'ends the queries of a worker that was killed': () =>
      inTheMiddle(async (running) => {
        await running.worker.kill();
        await running.handle.cancel();
        await running.bed.worker();
        await endsClean(running);
      }),

    'ends the queries of a worker that is frozen, and lets it write nothing when it thaws': () =>
      inTheMiddle(async (running) => {
        const { bed, worker: frozen } = running;
        frozen.signal('SIGSTOP');
        await running.handle.cancel();
        const other = await bed.worker();
        await endsClean(running);
        await bed.letGo(FIRST, SECOND);
        frozen.signal('SIGCONT');
        // The thawed worker has tried, and is done with it, once it has ended.
        assert.equal(await frozen.stop(), 0);
        await endsClean(running);
        assert.equal(await other.stop(), 0);
      }),

    'leaves the range free: the same asked again fills it': () =>
      inTheMiddle(async (running) => {
        const { bed } = running;
        await running.handle.cancel();
        await endsClean(running);
        await bed.letGo(FIRST, SECOND);
        const range = { from: FIRST, to: '2024-01-10', concurrency: 2 };
        const again = await bed.client.backfill({ pipeline: bed.pipeline, ...range });
        assert.equal(again.joined, false);
        assert.equal((await again.result()).filled, 10);
        const [sum] = await bed.database.sql('SELECT count(*)::int, sum(n)::int FROM daily');
        assert.deepEqual(sum, { count: 10, sum: 30 });
      }),
  });
});

/** Starts a worker and the backfill, on a bed of their own. */
async function inTheMiddle(test: (running: Running) => Promise<void>): Promise<void> {
  const bed = await makeBed();
  try {
    await bed.database.sql(`INSERT INTO daily VALUES ($1, 77), ($2, 77)`, [FIRST, SECOND]);
    await bed.hold(FIRST, SECOND);
    // As many slots as fills are held: frozen, it has no poll open that would take a fill from another.
    const worker = await bed.worker({ env: { REPAVE_FILLS: '2' } });
    const { pipeline } = bed;
    const handle = await bed.client.backfill({ pipeline, from: FIRST, to: '2024-01-10', concurrency: 2 });
    const runs: string[] = [];
    for (const key of [FIRST, SECOND]) {
      const child = bed.client.temporal.workflow.getHandle(partitionWorkflowId(pipeline, key));
      await until(async () => (await child.describe().catch(() => undefined)) !== undefined);
      const { runId } = await child.describe();
      await until(async () => (await bed.sessionsOf(runId)).some(({ state }) => state === 'active'));
      runs.push(runId);
    }
    await test({ bed, worker, handle, runs });
  } finally {
    await bed.close();
  }
}

/** Waits until the backfill says that it was cancelled, and looks at once at what the database still has of it. */
async function endsClean({ bed, handle, runs }: Running): Promise<void> {
  await assert.rejects(handle.result(), (error: unknown) => {
    assert.ok(error instanceof BackfillFailed, String(error));
    assert.equal(error.type, 'Cancelled');
    return true;
  });
  for (const run of runs) assert.deepEqual(await bed.sessionsOf(run), []);
  const rows = await bed.database.sql('SELECT day::text, n::int FROM daily ORDER BY day');
  assert.deepEqual(rows, [
    { day: FIRST, n: 77 },
    { day: SECOND, n: 77 },
  ]);
  assert.deepEqual(await bed.database.sql('SELECT key FROM repave.fill'), []);
  assert.deepEqual(await bed.database.sql('SELECT key FROM repave.failure'), []);
  assert.deepEqual(await bed.database.sql('SELECT outcome FROM repave.backfill'), [{ outcome: 'cancelled' }]);
  const third = bed.client.temporal.workflow.getHandle(partitionWorkflowId(bed.pipeline, '2024-01-03'));
  await assert.rejects(third.describe(), /not found/i);
}
