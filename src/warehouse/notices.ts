import type { Database } from './database.js';

/** Which of these ids, of an event and a hook, are recorded as told. */
export async function toldOf(database: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await database.query<{ id: string }>('SELECT id FROM repave.notice WHERE id = ANY ($1)', [ids]);
  return new Set(rows.map(({ id }) => id));
}

/** Records that somebody was told. Told twice is once. */
export async function recordTold(database: Database, id: string): Promise<void> {
  await database.query('INSERT INTO repave.notice (id) VALUES ($1) ON CONFLICT (id) DO NOTHING', [id]);
}

/** What the ledger says of a backfill's start; undefined where it has it no more. */
export async function begunBackfill(
  database: Database,
  run: string,
): Promise<{ readonly input: unknown; readonly startedBy: string | null } | undefined> {
  const [row] = await database.query<{ input: unknown; startedBy: string | null }>(
    'SELECT input, started_by AS "startedBy" FROM repave.backfill WHERE run = $1',
    [run],
  );
  return row;
}

/** The fill that stands in a partition; undefined where there is none. */
export async function standingFill(
  database: Database,
  pipeline: string,
  key: string,
): Promise<{ readonly rows: number; readonly filledAt: Date } | undefined> {
  const [row] = await database.query<{ rows: number; filledAt: Date }>(
    `SELECT rows::pg_catalog.float8 AS rows, filled_at AS "filledAt" FROM repave.partition
      WHERE pipeline = $1 AND key = $2 AND rows IS NOT NULL AND filled_at IS NOT NULL`,
    [pipeline, key],
  );
  return row;
}
