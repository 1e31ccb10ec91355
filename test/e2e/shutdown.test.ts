import assert from 'node:assert/strict';
import type { PartitionHandle } from '../../src/client.js';
import { atOnce } from '../chaos/at-once.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import type { WorkerProcess } from '../support/worker.js';

const KEY = '2024-03-01';

const TABLES = `
  CREATE TABLE source (day date NOT NULL);
  INSERT INTO source SELECT '${KEY}' FROM generate_series(1, 10);
  CREATE TABLE target (day date NOT NULL);`;

const SQL = `-- repave
-- target: target
-- partition: { column: day, by: day }
SELECT day FROM held('query') CROSS JOIN source WHERE day >= :date AND day < :end_date
`;

/** On the first worker it never ends, and does not hear that nobody waits for it. */
const DEAF = `
import { definePipeline } from 'repave';
export default definePipeline({
  target: 'target',
  partition: { column: 'day', by: 'day' },
  async *rows({ key }) {
    if (process.env.DEAF) {
      process.stderr.write('the source waits\\n');
      for (;;) await new Promise((go) => setTimeout(go, 100));
    }
    for (let i = 0; i < 10; i++) yield { day: key };
  },
});
`;

describe('a worker that is told to stop in the middle of a fill', function () {
  this.timeout(180_000);

  atOnce({
    'lets it finish within its grace': () =>
      stop('stop_finishes.sql', SQL, {}, async ({ installation, worker, handle, another }) => {
        await installation.release('query');
        assert.equal(await exitOf(worker), 0);
        await another();
        await handle.result();
        assert.deepEqual(await attempts(installation), [1]);
      }),

    'rolls it back after its grace, and another fills it, once': () =>
      stop(
        'stop_gives_up.sql',
        SQL,
        { REPAVE_SHUTDOWN_GRACE: '2' },
        async ({ installation, worker, handle, another }) => {
          assert.equal(await exitOf(worker), 0);
          assert.deepEqual(await installation.leftBehind(), []);
          assert.deepEqual(await attempts(installation), []);
          await installation.release('query');
          await another();
          await handle.result();
          assert.deepEqual(await attempts(installation), [2]);
        },
      ),

    'ends though a source does not heed its signal': () =>
      stop('stop_deaf.ts', DEAF, { REPAVE_SHUTDOWN_GRACE: '0', DEAF: 'yes' }, async (stopped) => {
        assert.equal(await exitOf(stopped.worker), 0);
        await stopped.another();
        await stopped.handle.result();
        assert.deepEqual(await attempts(stopped.installation), [2]);
      }),
  });
});

interface Stopping {
  readonly installation: Installation;
  readonly worker: WorkerProcess;
  readonly handle: PartitionHandle;
  /** Starts the worker that takes its place. */
  readonly another: () => Promise<WorkerProcess>;
}

/** Begins a fill, tells its worker to stop, and once that has heard it goes on as the case says. */
async function stop(
  file: string,
  pipeline: string,
  env: Record<string, string>,
  then: (stopping: Stopping) => Promise<void>,
): Promise<void> {
  const installation = await Installation.open({ pipelines: { [file]: pipeline }, tables: TABLES });
  try {
    await installation.hold('query');
    const worker = await installation.startWorker({ env });
    const handle = await installation.client.partition({ pipeline: file.replace(/\..*/, ''), key: KEY });
    if (pipeline === SQL) await installation.heldFills();
    else await until('the source', async () => worker.log().includes('the source waits'));
    worker.signal('SIGTERM');
    await until('the worker to hear it', async () => worker.log().includes('"msg":"Stopping'));
    await then({ installation, worker, handle, another: () => installation.startWorker() });
    assert.deepEqual(await installation.database.sql('SELECT count(*)::int AS rows FROM target'), [{ rows: 10 }]);
  } finally {
    await installation.close();
  }
}

/** How a worker has ended by itself. Rejects where it hangs. */
async function exitOf(worker: WorkerProcess): Promise<number | NodeJS.Signals> {
  const exit: { how?: number | NodeJS.Signals } = {};
  void worker.exited.then((how) => (exit.how = how));
  await until('the worker to end', async () => exit.how !== undefined);
  return exit.how ?? 'SIGKILL';
}

async function attempts(installation: Installation): Promise<number[]> {
  const fills = await installation.database.sql<{ attempt: number }>('SELECT attempt FROM repave.fill ORDER BY id');
  return fills.map(({ attempt }) => attempt);
}
