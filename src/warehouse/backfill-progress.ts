import { MAX_LISTED_FAILURES, type Pause, type PartitionFailure } from '../contract.js';
import { STANDS } from './backfills.js';
import type { Database } from './database.js';

/** Minutes over which {@link BackfillProgress.recent} counts. */
export const RECENT_MINUTES = 5;

/** What a backfill has come to so far, and how it is set: all by the ledger, whether a worker runs or not. */
export interface BackfillProgress {
  /** Partitions it has filled so far. One that a reset of the workflow filled twice counts twice, and all of them at most as `total`. */
  readonly filled: number;
  /** Partitions that have failed for good in it and were not filled since. */
  readonly failed: number;
  /** Rows that its fills have inserted. */
  readonly rows: number;
  /** The first of those that have failed, in the order in which they did: at most `MAX_LISTED_FAILURES`, each with all of its message. */
  readonly failures: readonly (PartitionFailure & { readonly at: Date })[];
  /** When its last fill committed; null where none has. */
  readonly lastFillAt: Date | null;
  /** Its fills of the last {@link RECENT_MINUTES}, by the database's clock. */
  readonly recent: {
    readonly fills: number;
    /** Seconds from the first of them to now, at most as many as those minutes have; 0 where there are none. */
    readonly seconds: number;
  };
  /** Absent: it is not paused. */
  readonly paused?: Pause;
  readonly stopping: boolean;
  /** Partitions (with a batch: children) at once. Null where an older version began it. */
  readonly concurrency: number | null;
  /** As Temporal has it. Null where an older version began it. */
  readonly startedBy: string | null;
}

/**
 * What one backfill has come to, by its run in the ledger. Undefined where the ledger does not know the run. Reads the run's
 * own fills and failures, however many others the ledger has.
 */
export async function backfillProgress(database: Database, run: string): Promise<BackfillProgress | undefined> {
  const [row] = await database.query<Row>(
    `WITH standing AS MATERIALIZED (
       SELECT DISTINCT ON (x.key COLLATE "C") x.id FROM repave.failure x
        WHERE x.backfill = $1 AND ${STANDS} ORDER BY x.key COLLATE "C", x.id DESC)
     SELECT least(f.fills, b.total)::pg_catalog.float8 AS filled, f.rows::pg_catalog.float8 AS rows, f.last AS "lastFillAt",
            f.recent::pg_catalog.float8 AS "recentFills",
            coalesce(EXTRACT(epoch FROM f.now - f."recentFrom"), 0)::pg_catalog.float8 AS "recentSeconds",
            (SELECT pg_catalog.count(*)::pg_catalog.float8 FROM standing) AS failed,
            (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('key', x.key, 'type', x.type, 'message', x.message,
                                                                              'at', x.failed_at) ORDER BY x.id), '[]')
               FROM repave.failure x WHERE x.id = ANY (ARRAY(SELECT id FROM standing ORDER BY id LIMIT $3))) AS failures,
            b.paused_by AS "pausedBy", b.paused_reason AS "pausedReason", b.paused_at AS "pausedAt",
            b.stopping, b.concurrency, b.started_by AS "startedBy"
       FROM repave.backfill b
      CROSS JOIN (
             SELECT pg_catalog.count(*) AS fills, coalesce(pg_catalog.sum(rows_inserted), 0) AS rows, pg_catalog.max(filled_at) AS last,
                    pg_catalog.count(*) FILTER (WHERE filled_at > r.since) AS recent,
                    pg_catalog.min(filled_at) FILTER (WHERE filled_at > r.since) AS "recentFrom",
                    pg_catalog.statement_timestamp() AS now
               FROM repave.fill
              CROSS JOIN (SELECT pg_catalog.statement_timestamp() - pg_catalog.make_interval(mins => $2) AS since) r
              WHERE backfill = $1) f
      WHERE b.run = $1`,
    [run, RECENT_MINUTES, MAX_LISTED_FAILURES],
  );
  return row && progressOf(row);
}

interface Row extends Pick<
  BackfillProgress,
  'filled' | 'failed' | 'rows' | 'lastFillAt' | 'stopping' | 'concurrency' | 'startedBy'
> {
  readonly recentFills: number;
  readonly recentSeconds: number;
  readonly failures: readonly (PartitionFailure & { readonly at: string })[];
  readonly pausedBy: Pause['by'] | null;
  readonly pausedReason: string | null;
  readonly pausedAt: Date | null;
}

function progressOf(row: Row): BackfillProgress {
  const { recentFills, recentSeconds, failures, pausedBy, pausedReason, pausedAt, ...rest } = row;
  return {
    ...rest,
    failures: failures.map(({ at, ...failure }) => ({ ...failure, at: new Date(at) })),
    recent: { fills: recentFills, seconds: recentSeconds },
    ...(pausedAt && {
      paused: {
        by: pausedBy ?? 'lever',
        ...(pausedReason !== null && { reason: pausedReason }),
        since: pausedAt.toISOString(),
      },
    }),
  };
}
