import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { partitionWorkflowId } from '../../src/contract.js';
import { exampleFile, loadExample } from '../../src/dev/example.js';
import type { WorkerProcess } from '../support/worker.js';
import { Installation, type OpenFill } from './installation.js';
import { until } from './until.js';

const KILLS = 10;
const DAYS = 546;
/** Months whose days wait until the last kill: before it, the backfill cannot end. */
const LAST_MONTHS = ['1998-05', '1998-06'];
/** Days before them. */
const FREE_DAYS = 485;

/** The example's pipeline, each of whose days takes a moment, and may be held. */
const SALES_SUMMARY = `-- repave
-- target: sales_summary
-- partition: { column: sale_date, by: day }
-- start: 1997-01-01
-- checks: [{ rows: { min: 1 } }, { unique: [sale_date] }]
SELECT sold_on AS sale_date, count(*) AS orders, sum(quantity) AS units, sum(amount) AS revenue
FROM   sales CROSS JOIN held('all') CROSS JOIN held(left(:key, 7)) AS month CROSS JOIN (SELECT pg_sleep(0.1)) AS moment
WHERE  sold_on >= :date AND sold_on < :end_date
GROUP  BY sold_on
`;

describe('a backfill of all of CDNOW whose worker is killed ten times', function () {
  this.timeout(1_200_000);
  let installation: Installation;
  // A pipeline of its own name: its children must not meet those of other tests.
  const pipeline = 'cdnow_kills';

  before(async () => {
    installation = await Installation.open({ pipelines: { [`${pipeline}.sql`]: SALES_SUMMARY } });
    const { ownerUrl } = installation.database;
    await loadExample(ownerUrl, exampleFile(fileURLToPath(new URL('../..', import.meta.url))));
  });
  after(() => installation.close());

  it('ends with the same figures, and a ledger that says what is there', async () => {
    const { database, client } = installation;
    for (const month of LAST_MONTHS) await installation.hold(month);
    await Promise.all([installation.startWorker(), installation.startWorker()]);
    const handle = await client.backfill({ pipeline, from: '1997-01-01', to: '1998-06-30', concurrency: 24 });
    const result = handle.result();
    result.catch(() => undefined);

    const open: OpenFill[][] = [];
    // Two workers fill when one of them is killed, and the other while its successor starts.
    let replaced: Promise<unknown> = Promise.resolve();
    for (let kill = 1; kill <= KILLS; kill++) {
      // Spread over the run, but for its end, which waits for what was killed last.
      await until(
        `${kill} tenths of the days that are not held`,
        async () => (await filledDays()) >= (FREE_DAYS * (kill - 1)) / KILLS,
      );
      await replaced;
      // Each other one at any moment, by which what was open may have committed, and each other one while none can commit.
      const held = kill % 2 === 0;
      if (held) await installation.hold('all');
      if (held) await installation.heldFills();
      const { worker, fills } = await until('a worker with an open fill', findVictim);
      replaced = installation.startWorker();
      replaced.catch(() => undefined);
      await worker.kill();
      open.push(fills);
      if (held) await installation.release('all');
    }
    await replaced;
    for (const month of LAST_MONTHS) await installation.release(month);

    const { notes, failures, ...counts } = await result;
    assert.deepEqual(failures, []);
    assert.deepEqual(notes, []);
    assert.deepEqual(counts, {
      pipeline,
      first: '1997-01-01',
      last: '1998-06-30',
      total: DAYS,
      filled: DAYS,
      failed: 0,
      skipped: 0,
      rows: DAYS,
    });
    assert.deepEqual(
      await database.sql(`SELECT count(*)::int AS partitions, sum(orders)::int AS orders, sum(units)::int AS units,
                                 sum(revenue)::text AS revenue FROM sales_summary`),
      [{ partitions: DAYS, orders: 69_659, units: 167_881, revenue: '2500315.63' }],
    );
    assert.deepEqual(
      await database.sql(`(SELECT sold_on, count(*), sum(quantity), sum(amount) FROM sales GROUP BY 1)
                          EXCEPT ALL SELECT sale_date, orders, units, revenue FROM sales_summary`),
      [],
      'days that are not as their source',
    );
    assert.deepEqual(
      await database.sql(`SELECT coalesce(p.key, d.key) AS key, p.rows, d.rows AS there
                            FROM (SELECT key, rows FROM repave.partition WHERE outcome = 'filled') p
                            FULL JOIN (SELECT sale_date::text AS key, count(*) AS rows FROM sales_summary GROUP BY 1) d USING (key)
                           WHERE p.rows IS DISTINCT FROM d.rows`),
      [],
      'partitions whose ledger row is not as their data',
    );
    assert.deepEqual(
      await database.sql(`SELECT count(*)::int AS fills, count(p.key)::int AS current, count(DISTINCT f.key)::int AS keys
                            FROM repave.fill f LEFT JOIN repave.partition p USING (pipeline, key, run, attempt, fence)`),
      [{ fills: DAYS, current: DAYS, keys: DAYS }],
    );
    // What was killed before its COMMIT was done by a later attempt of the same run.
    const fences = new Set(
      (await database.sql<{ fence: number }>('SELECT fence::float8 AS fence FROM repave.fill')).map(
        ({ fence }) => fence,
      ),
    );
    const lost = open.map((fills) => fills.filter(({ fence }) => !fences.has(fence)));
    const hits = lost.filter((fills) => fills.length > 0).length;
    assert.ok(hits >= KILLS / 2, `only ${hits} of ${KILLS} kills hit an open fill`);
    const later = await database.sql<{ run: string }>('SELECT run FROM repave.fill WHERE attempt > 1');
    const runs = new Set(later.map(({ run }) => run));
    assert.deepEqual(
      lost.flat().filter(({ run }) => !runs.has(run)),
      [],
    );
    assert.deepEqual(await database.sql('SELECT key FROM repave.claim'), [], 'claims left');
  });

  async function filledDays(): Promise<number> {
    const [row] = await installation.database.sql<{ n: number }>('SELECT count(*)::int AS n FROM repave.fill');
    return row?.n ?? 0;
  }

  /** The worker with the most open fills, if any has one. */
  async function findVictim(): Promise<{ worker: WorkerProcess; fills: OpenFill[] } | undefined> {
    const byWorker = new Map<WorkerProcess, OpenFill[]>();
    await Promise.all(
      (await installation.openFills()).map(async (fill) => {
        const worker = await installation.workerOf(partitionWorkflowId(pipeline, fill.key), fill.run);
        if (worker) byWorker.set(worker, [...(byWorker.get(worker) ?? []), fill]);
      }),
    );
    const [most] = [...byWorker].sort(([, a], [, b]) => b.length - a.length);
    return most && { worker: most[0], fills: most[1] };
  }
});
