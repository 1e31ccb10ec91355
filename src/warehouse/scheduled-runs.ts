import type { Database } from './database.js';

/** SQL: a run that has planned its partitions, and did not break down over them. One without an outcome may still run. */
const PLANNED = `coalesce(outcome, '') NOT IN ('failed', 'terminated')`;
/** Of an id that Temporal has made for a schedule's run: `2024-03-01T02:15:00Z`, when it was due. */
const DUE = 'pg_catalog.right(id, 20) COLLATE "C"';
const DUE_FORM = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';

/** Whether the ledger has a run of this id that has planned its partitions, and did not break down over them. */
export async function hasPlanned(database: Database, id: string): Promise<boolean> {
  return (await database.query(`SELECT FROM repave.backfill WHERE id = $1 AND ${PLANNED} LIMIT 1`, [id])).length > 0;
}

/**
 * When the newest of a schedule's runs was due that was due from `from` on and before `before`, and has planned its partitions,
 * as {@link hasPlanned} says; undefined where there is none. Runs planned later than `ownWithinMs` after they were due do not
 * count: somebody has asked for times of the past, which say nothing of those in between. `prefix`: what the ids of its runs
 * begin with, up to the time.
 */
export async function newestPlannedDue(
  database: Database,
  pipeline: string,
  prefix: string,
  { from, before, ownWithinMs }: { readonly from: Date; readonly before: Date; readonly ownWithinMs: number },
): Promise<Date | undefined> {
  const [row] = await database.query<{ due: string | null }>(
    // None is planned before it is due, so the index by `started_at` leaves out what is too old; a day for clocks that differ.
    `SELECT pg_catalog.max(${DUE}) AS due FROM repave.backfill
      WHERE pipeline = $1 AND started_at > $3::pg_catalog.timestamptz - interval '1 day'
        AND pg_catalog.left(id, -20) = $2 AND ${DUE} LIKE '____-__-__T__:__:__Z' AND ${PLANNED}
        AND ${DUE} >= ${dueText('$3::pg_catalog.timestamptz')} AND ${DUE} < ${dueText('$4::pg_catalog.timestamptz')}
        AND ${DUE} >= ${dueText(`started_at - $5::pg_catalog.float8 * interval '1 millisecond'`)}`,
    [pipeline, prefix, from, before, ownWithinMs],
  );
  return row?.due ? new Date(row.due) : undefined;
}

function dueText(instant: string): string {
  return `pg_catalog.to_char((${instant}) AT TIME ZONE 'UTC', '${DUE_FORM}') COLLATE "C"`;
}
