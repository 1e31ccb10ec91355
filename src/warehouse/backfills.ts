import type { Database } from './database.js';

export const BACKFILL_OUTCOMES = ['done', 'incomplete', 'cancelled', 'failed'] as const;
export type BackfillOutcome = (typeof BACKFILL_OUTCOMES)[number];

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
}

/** Records that a backfill has begun. Told twice is once. */
export async function beginBackfill(
  database: Database,
  backfill: Pick<BackfillRow, 'run' | 'id' | 'pipeline' | 'input' | 'total'>,
): Promise<void> {
  await database.query(
    `INSERT INTO repave.backfill (run, id, pipeline, input, total) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run) DO NOTHING`,
    [backfill.run, backfill.id, backfill.pipeline, JSON.stringify(backfill.input), backfill.total],
  );
}

/** Records how a backfill has ended. Told twice, the last word stands. */
export async function endBackfill(
  database: Database,
  end: Pick<BackfillRow, 'run' | 'filled' | 'failed' | 'skipped' | 'rows'> & { readonly outcome: BackfillOutcome },
): Promise<void> {
  await database.query(
    `UPDATE repave.backfill
        SET outcome = $2, filled = $3, failed = $4, skipped = $5, rows = $6, ended_at = pg_catalog.clock_timestamp()
      WHERE run = $1`,
    [end.run, end.outcome, end.filled, end.failed, end.skipped, end.rows],
  );
}

/** Keeps the list of a run that no range says. Kept twice is once. */
export async function storeRunKeys(database: Database, run: string, keys: readonly string[]): Promise<void> {
  await database.query(
    `INSERT INTO repave.run_key (run, seq, key)
     SELECT $1, seq::pg_catalog.int4, key FROM pg_catalog.unnest($2::pg_catalog.text[]) WITH ORDINALITY AS k(key, seq)
     ON CONFLICT (run, seq) DO NOTHING`,
    [run, keys],
  );
}

/** A page of a run's list: at most `limit` keys behind the first `after` of them, in its order. */
export async function runKeys(database: Database, run: string, after: number, limit: number): Promise<string[]> {
  const rows = await database.query<{ key: string }>(
    'SELECT key FROM repave.run_key WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3',
    [run, after, limit],
  );
  return rows.map(({ key }) => key);
}

/** Runs of backfills, the newest first. */
export async function readBackfills(
  database: Database,
  which: { readonly id?: string; readonly pipeline?: string; readonly limit: number },
): Promise<BackfillRow[]> {
  return database.query<BackfillRow>(
    `SELECT run, id, pipeline, input, total::pg_catalog.float8 AS total, filled::pg_catalog.float8 AS filled,
            failed::pg_catalog.float8 AS failed, skipped::pg_catalog.float8 AS skipped, rows::pg_catalog.float8 AS rows,
            outcome, started_at AS "startedAt", ended_at AS "endedAt"
       FROM repave.backfill
      WHERE ($1::text IS NULL OR id = $1) AND ($2::text IS NULL OR pipeline = $2)
      ORDER BY started_at DESC LIMIT $3`,
    [which.id ?? null, which.pipeline ?? null, which.limit],
  );
}
