import type { BackfillOutcome as Ended, Pause } from '../contract.js';
import { Failure } from '../failure.js';
import type { Database } from './database.js';

/** `terminated`: it never said how it ended, and another run has its id now. */
export type BackfillOutcome = Ended | 'terminated';

/** One run of a backfill, for those who look while no worker runs. */
export interface BackfillRow {
  /** The workflow's first run id: it stays the same over continue-as-new. */
  readonly run: string;
  readonly id: string;
  readonly pipeline: string;
  readonly input: unknown;
  readonly total: number;
  readonly filled: number;
  readonly failed: number;
  readonly skipped: number;
  readonly rows: number;
  /** null while it runs. */
  readonly outcome: BackfillOutcome | null;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  /** Who started it, as Temporal has it. Null where an older version began it. */
  readonly startedBy: string | null;
}

/**
 * Records that a backfill has begun. Told twice is once. Of an id one run is open at a time, so earlier ones that never said
 * how they ended are over: they are recorded as terminated.
 */
export async function beginBackfill(
  database: Database,
  backfill: Pick<BackfillRow, 'run' | 'id' | 'pipeline' | 'input' | 'total'> & {
    readonly startedBy?: string;
    readonly concurrency?: number;
  },
): Promise<void> {
  await database.query(
    `WITH begun AS (
       INSERT INTO repave.backfill (run, id, pipeline, input, total, started_by, concurrency)
       VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run) DO NOTHING RETURNING id)
     UPDATE repave.backfill b SET outcome = 'terminated', ended_at = pg_catalog.clock_timestamp()
       FROM begun WHERE b.id = begun.id AND b.outcome IS NULL`,
    [
      backfill.run,
      backfill.id,
      backfill.pipeline,
      JSON.stringify(backfill.input),
      backfill.total,
      backfill.startedBy ?? null,
      backfill.concurrency ?? null,
    ],
  );
}

/** Records how a backfill has ended, and returns when, by the database's clock. Told twice, the last word stands. */
export async function endBackfill(
  database: Database,
  end: Pick<BackfillRow, 'run' | 'filled' | 'failed' | 'skipped' | 'rows'> & { readonly outcome: BackfillOutcome },
): Promise<Date | undefined> {
  const [row] = await database.query<{ endedAt: Date }>(
    `UPDATE repave.backfill
        SET outcome = $2, filled = $3, failed = $4, skipped = $5, rows = $6,
            ended_at = pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp())
      WHERE run = $1 RETURNING ended_at AS "endedAt"`,
    [end.run, end.outcome, end.filled, end.failed, end.skipped, end.rows],
  );
  return row?.endedAt;
}

/**
 * Records how a backfill that runs is set. Told twice, the last word stands. `wentOnAfter`: the end at this time was none, and
 * is taken back. Only just that end: a word that comes late, when the backfill has ended again, takes nothing back.
 */
export async function noteBackfill(
  database: Database,
  { run, concurrency, paused, stopping, wentOnAfter }: BackfillSetting & { run: string; wentOnAfter?: string },
): Promise<void> {
  await database.query(
    `UPDATE repave.backfill
        SET concurrency = $2, paused_by = $3, paused_reason = $4, paused_at = $5, stopping = $6,
            outcome = CASE WHEN ended_at = $7 THEN NULL ELSE outcome END,
            ended_at = CASE WHEN ended_at = $7 THEN NULL ELSE ended_at END
      WHERE run = $1`,
    [
      run,
      concurrency,
      paused?.by ?? null,
      paused?.reason ?? null,
      paused?.since ?? null,
      stopping,
      wentOnAfter ?? null,
    ],
  );
}

/** How a backfill is set. */
export interface BackfillSetting {
  readonly concurrency: number;
  readonly paused?: Pause;
  readonly stopping: boolean;
}

/**
 * SQL: no fill of the backfill $1 has come after its failure `x`. Looked up partition by partition, whatever the planner
 * thinks of the number of fills: `IS NOT DISTINCT FROM` keeps it from reading all those of the backfill for each failure.
 */
export const STANDS = `(SELECT true FROM repave.fill f
                         WHERE f.pipeline = x.pipeline AND f.key = x.key AND f.backfill IS NOT DISTINCT FROM $1 AND f.fence > x.fence
                         LIMIT 1) IS NULL`;

/** Partitions that have failed in a backfill and were not filled since, in the calendar's order: at most `limit` behind `after`. */
export async function failedKeys(
  database: Database,
  run: string,
  after: string | undefined,
  limit: number,
): Promise<string[]> {
  const rows = await database.query<{ key: string }>(
    `SELECT DISTINCT x.key COLLATE "C" AS key FROM repave.failure x
      WHERE x.backfill = $1 AND ($2::text IS NULL OR x.key COLLATE "C" > $2) AND ${STANDS}
      ORDER BY 1 LIMIT $3`,
    [run, after ?? null, limit],
  );
  return rows.map(({ key }) => key);
}

/** Keeps a page of the list of a run that no range says, behind the first `after` of its keys. Kept twice is once. */
export async function storeRunKeys(database: Database, run: string, keys: readonly string[], after = 0): Promise<void> {
  await database.query(
    `INSERT INTO repave.run_key (run, seq, key)
     SELECT $1, $3::pg_catalog.int4 + seq::pg_catalog.int4, key
       FROM pg_catalog.unnest($2::pg_catalog.text[]) WITH ORDINALITY AS k(key, seq)
     ON CONFLICT (run, seq) DO NOTHING`,
    [run, keys, after],
  );
}

/**
 * A page of a run's list: at most `limit` keys behind the first `after` of them, in its order. Throws `InvalidInput` where the
 * list was pruned, wholly or in part: a run must never take that for its end.
 */
export async function runKeys(database: Database, run: string, after: number, limit: number): Promise<string[]> {
  const rows = await database.query<{ key: string; seq: number }>(
    'SELECT key, seq FROM repave.run_key WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3',
    [run, after, limit],
  );
  const whole = rows[0] ? rows[0].seq === after + 1 : await hasList(database, run);
  if (whole) return rows.map(({ key }) => key);
  throw new Failure(
    'InvalidInput',
    `The ledger has the list of the run ${run} no more: \`repave prune\` removes it once its backfill has ended. Start the backfill anew.`,
  );
}

async function hasList(database: Database, run: string): Promise<boolean> {
  return (await database.query('SELECT FROM repave.run_key WHERE run = $1 LIMIT 1', [run])).length > 0;
}

/** Runs of backfills, the newest first; with `open`, those alone that have not ended. */
export async function readBackfills(
  database: Database,
  which: { readonly id?: string; readonly pipeline?: string; readonly open?: true; readonly limit: number },
): Promise<BackfillRow[]> {
  return database.query<BackfillRow>(
    `SELECT run, id, pipeline, input, total::pg_catalog.float8 AS total, filled::pg_catalog.float8 AS filled,
            failed::pg_catalog.float8 AS failed, skipped::pg_catalog.float8 AS skipped, rows::pg_catalog.float8 AS rows,
            outcome, started_at AS "startedAt", ended_at AS "endedAt", started_by AS "startedBy"
       FROM repave.backfill
      WHERE ($1::text IS NULL OR id = $1) AND ($2::text IS NULL OR pipeline = $2)
        ${which.open ? 'AND outcome IS NULL' : ''}
      ORDER BY started_at DESC LIMIT $3`,
    [which.id ?? null, which.pipeline ?? null, which.limit],
  );
}
