import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { atOnce } from '../chaos/at-once.js';
import { type Bed, DAILY, makeBed } from '../support/bed.js';
import type { WorkerProcess } from '../support/worker.js';
import { until } from '../workflows/scripted.js';

const [FIRST, SECOND, LAST] = ['2024-01-01', '2024-01-02', '2024-01-03'] as const;

interface Change {
  readonly bed: Bed;
  /** The pipeline's file. */
  readonly file: string;
  /** The worker that fills. */
  readonly worker: WorkerProcess;
}

describe('a backfill whose pipeline is no more', function () {
  this.timeout(600_000);

  atOnce({
    'is cancelled where its file was deleted and its worker killed, whose queries go on': () =>
      cancel({}, async ({ file, worker }) => {
        rmSync(file);
        await worker.kill();
      }),

    'is cancelled where its file is broken': () =>
      cancel({}, async ({ file, worker }) => {
        writeFileSync(file, DAILY.replace('-- target: daily\n', ''));
        await worker.stop();
      }),

    'is cancelled in a batch whose file was deleted, in a database that no other pipeline has': () =>
      cancel({ header: '-- batch: 3\n-- database: SALES_URL\n' }, async ({ file, worker }) => {
        rmSync(file);
        await worker.stop();
      }),

    'is cancelled where it has another name, which takes over what was filled': () => cancelRenamed(),
  });
});

/** Renames the pipeline between the fill of the first day and those of the others. */
async function cancelRenamed(): Promise<void> {
  await cancel(
    { now: 'renamed' },
    async ({ bed, file, worker }) => {
      await worker.stop();
      rmSync(file);
      const text = DAILY.replace('-- start', `-- formerly: ${bed.pipeline}\n-- start`);
      writeFileSync(join(bed.project, 'pipelines', `${bed.pipeline}_renamed.sql`), text);
    },
    async ({ bed, worker }) => {
      assert.match(worker.log(), new RegExp(`Backfills of ${bed.pipeline} have not ended.*repave cancel backfill/`));
      const again = await bed.client.backfill({ pipeline: `${bed.pipeline}_renamed`, from: FIRST, to: LAST });
      assert.equal((await again.result()).filled, 3);
    },
  );
}

/** Fills one day of three, changes the project while the others are filled, starts another worker, cancels, and looks. */
async function cancel(
  { header = '', now }: { header?: string; now?: 'renamed' },
  change: (change: Change) => Promise<void>,
  afterwards: (change: Change) => Promise<void> = async () => undefined,
): Promise<void> {
  const bed = await makeBed({ pipeline: DAILY.replace('-- start', `${header}-- start`) });
  try {
    const { client, database, pipeline } = bed;
    await bed.hold(SECOND, LAST);
    const options = { env: { REPAVE_SHUTDOWN_GRACE: '0', SALES_URL: database.url } };
    const worker = await bed.worker(options);
    const handle = await client.backfill({ pipeline, from: FIRST, to: LAST });
    const runs = async (): Promise<string[]> =>
      (await database.sql<{ run: string }>('SELECT run FROM repave.claim WHERE key <> $1', [FIRST])).map(
        ({ run }) => run,
      );
    await until(async () => {
      const [filled] = await database.sql('SELECT FROM repave.fill');
      const sessions = await Promise.all((await runs()).map((run) => bed.sessionsOf(run)));
      return filled !== undefined && sessions.flat().some(({ state }) => state === 'active');
    });
    const file = join(bed.project, 'pipelines', `${pipeline}.sql`);
    await change({ bed, file, worker });
    const other = await bed.worker(options);
    await handle.cancel();
    await assert.rejects(handle.result(), { type: 'Cancelled' });

    const name = now === undefined ? pipeline : `${pipeline}_${now}`;
    assert.deepEqual((await Promise.all((await runs()).map((run) => bed.sessionsOf(run)))).flat(), []);
    assert.deepEqual(
      await database.sql('SELECT pipeline, outcome, total::int, filled::int, failed::int FROM repave.backfill'),
      [{ pipeline: name, outcome: 'cancelled', total: 3, filled: 1, failed: 0 }],
    );
    assert.deepEqual(await database.sql('SELECT pipeline, key, outcome FROM repave.partition'), [
      { pipeline: name, key: FIRST, outcome: 'filled' },
    ]);
    assert.deepEqual(await database.sql('SELECT FROM repave.claim WHERE NOT closed OR pipeline <> $1', [pipeline]), []);
    await bed.letGo(SECOND, LAST);
    await afterwards({ bed, file, worker: other });
  } finally {
    await bed.close();
  }
}
