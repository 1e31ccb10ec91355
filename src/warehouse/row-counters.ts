/** Rows that a session has written in a table, whoever's statement, trigger or function it was. NaN where the server does not count. */
export interface RowCounters {
  /** Also those that were deleted again, and one for each that an UPDATE has moved to another part. */
  readonly inserted: number;
  readonly updated: number;
  /** Also one for each that an UPDATE has moved to another part. */
  readonly deleted: number;
}

const UNCOUNTED: RowCounters = { inserted: NaN, updated: NaN, deleted: NaN };

/**
 * SQL of {@link RowCounters} with those of the session's transaction up to now, as JSON; NULL where the server does not count. It
 * counts what was tried, so also what was rolled back to a savepoint. `tables` is an expression that gives their oids.
 * https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-STATS-FUNCTIONS
 */
export function rowCounters(tables: string): string {
  const sum = (counter: string): string =>
    `coalesce(pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_${counter}(oid)), 0)::pg_catalog.float8`;
  return `(SELECT CASE WHEN pg_catalog.current_setting('track_counts')::pg_catalog.bool
                       THEN pg_catalog.json_build_object('inserted', ${sum('inserted')}, 'updated', ${sum('updated')}, 'deleted', ${sum('deleted')}) END
             FROM ${tables} AS counted(oid))`;
}

/** What was written from one reading to the next. */
export function writtenSince(before: RowCounters | null, now: RowCounters | null | undefined): RowCounters {
  if (!before || !now) return UNCOUNTED;
  return {
    inserted: now.inserted - before.inserted,
    updated: now.updated - before.updated,
    deleted: now.deleted - before.deleted,
  };
}
