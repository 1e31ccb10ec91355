import type { Database } from './database.js';
import type { CheckOutcome } from './fill-request.js';
import { type ComesAfter, upstreamDigests } from './upstream.js';

/** What the ledger says of one partition: its last outcome, and what stands in it. */
export interface PartitionRow {
  readonly key: string;
  readonly outcome: 'filled' | 'failed';
  /** Of the last committed fill; null where there was none. */
  readonly rows: number | null;
  readonly fingerprint: string | null;
  readonly filledAt: Date | null;
  /** Of the last outcome, where that was a failure. */
  readonly failedAt: Date | null;
  readonly failureType: string | null;
  readonly failureMessage: string | null;
  readonly run: string;
  readonly attempt: number;
}

/** The ledger's rows of a pipeline's partitions, by key; with bounds, only those between them, both included. */
export async function partitionRows(
  database: Database,
  pipeline: string,
  from?: string,
  to?: string,
): Promise<Map<string, PartitionRow>> {
  const rows = await database.query<PartitionRow>(
    // Keys of one granularity sort in the order of time only byte by byte.
    `SELECT key, outcome, rows::pg_catalog.float8 AS rows, fingerprint, filled_at AS "filledAt", failed_at AS "failedAt",
            failure_type AS "failureType", failure_message AS "failureMessage", run, attempt
       FROM repave.partition
      WHERE pipeline = $1 AND ($2::text IS NULL OR key COLLATE "C" >= $2) AND ($3::text IS NULL OR key COLLATE "C" <= $3)
      ORDER BY key COLLATE "C"`,
    [pipeline, from ?? null, to ?? null],
  );
  return new Map(rows.map((row) => [row.key, row]));
}

interface HistoryEntryBase {
  readonly at: Date;
  readonly run: string;
  readonly attempt: number;
  /** Who started the run, as Temporal has it; who adopted. Null: by an older version. */
  readonly startedBy: string | null;
  /** The backfill it was part of, by its run. Null: started alone, adopted, or by an older version. */
  readonly backfill: string | null;
  /** That backfill's workflow id. Null also where the ledger has the backfill no more. */
  readonly backfillId: string | null;
}

export interface HistoryFill extends HistoryEntryBase {
  readonly kind: 'fill';
  readonly rows: number;
  readonly deleted: number;
  readonly seconds: number;
  readonly checks: readonly CheckOutcome[];
  readonly warnings: readonly string[];
  /** Whether none was written, since the new rows equalled the old. */
  readonly unchanged: boolean;
  /** No fill: rows that stood there were recorded as filled. */
  readonly adopted: boolean;
  readonly fingerprint: string;
  /** What the pipeline's `changed` said before its rows were read; null where it had none. */
  readonly sourceVersion: string | null;
}

export interface HistoryFailure extends HistoryEntryBase {
  readonly kind: 'failure';
  readonly type: string;
  readonly message: string;
}

export type HistoryEntry = HistoryFill | HistoryFailure;

/** Every committed fill and final failure of one partition, the newest first. */
export async function partitionHistory(database: Database, pipeline: string, key: string): Promise<HistoryEntry[]> {
  const fills = await database.query<Omit<HistoryFill, 'kind'>>(
    `SELECT f.filled_at AS at, f.run, f.attempt, f.started_by AS "startedBy", f.backfill, b.id AS "backfillId",
            f.rows_inserted::pg_catalog.float8 AS rows, f.rows_deleted::pg_catalog.float8 AS deleted,
            f.seconds, f.checks, f.warnings, f.unchanged, f.adopted, f.fingerprint,
            f.source_version AS "sourceVersion"
       FROM repave.fill f LEFT JOIN repave.backfill b ON b.run = f.backfill
      WHERE f.pipeline = $1 AND f.key = $2`,
    [pipeline, key],
  );
  const failures = await database.query<Omit<HistoryFailure, 'kind'>>(
    `SELECT x.failed_at AS at, x.run, x.attempt, x.started_by AS "startedBy", x.backfill, b.id AS "backfillId", x.type, x.message
       FROM repave.failure x LEFT JOIN repave.backfill b ON b.run = x.backfill
      WHERE x.pipeline = $1 AND x.key = $2`,
    [pipeline, key],
  );
  const entries: HistoryEntry[] = [
    ...fills.map((fill) => ({ kind: 'fill' as const, ...fill })),
    ...failures.map((failure) => ({ kind: 'failure' as const, ...failure })),
  ];
  return entries.sort((a, b) => b.at.getTime() - a.at.getTime());
}

export interface PipelineCounts {
  readonly filled: number;
  readonly failed: number;
  readonly outdated: number;
  /** Greatest key that was ever filled. */
  readonly newest: string | null;
}

/**
 * Partitions of a pipeline by state, as far as the ledger has rows of them: `missing` needs the calendar. With `after` those are
 * outdated too that are older than what they come after.
 */
export async function pipelineCounts(
  database: Database,
  pipeline: string,
  fingerprint: string,
  after?: ComesAfter,
): Promise<PipelineCounts> {
  const [row] = await database.query<PipelineCounts>(
    `SELECT pg_catalog.count(*) FILTER (WHERE outcome = 'filled' AND fingerprint = $2)::pg_catalog.float8 AS filled,
            pg_catalog.count(*) FILTER (WHERE outcome = 'failed')::pg_catalog.float8 AS failed,
            pg_catalog.count(*) FILTER (WHERE outcome = 'filled' AND fingerprint <> $2)::pg_catalog.float8 AS outdated,
            (SELECT pg_catalog.max(key COLLATE "C") FROM repave.partition WHERE pipeline = $1 AND filled_at IS NOT NULL) AS newest
       FROM repave.partition WHERE pipeline = $1`,
    [pipeline, fingerprint],
  );
  if (!row) return { filled: 0, failed: 0, outdated: 0, newest: null };
  if (!after) return row;
  const { filled, moved } = await countMoved(database, pipeline, fingerprint, after);
  return { ...row, filled, outdated: row.outdated + moved };
}

/** Partitions looked at together. */
const PAGE_SIZE = 5_000;

/** How many partitions are filled by this fingerprint, and how many of those are older than what they come after: they are not in the first. */
async function countMoved(
  database: Database,
  pipeline: string,
  fingerprint: string,
  after: ComesAfter,
): Promise<{ readonly filled: number; readonly moved: number }> {
  let [filled, moved] = [0, 0];
  for (let behind: string | null = null; ;) {
    const page: { key: string; upstream: string | null }[] = await database.query(
      `SELECT key, upstream FROM repave.partition
        WHERE pipeline = $1 AND outcome = 'filled' AND fingerprint = $2 AND ($3::text IS NULL OR key COLLATE "C" > $3)
        ORDER BY key COLLATE "C" LIMIT ${PAGE_SIZE}`,
      [pipeline, fingerprint, behind],
    );
    const digests = await upstreamDigests(
      database,
      after,
      page.map(({ key }) => key),
    );
    const older = page.filter(({ key, upstream }) => upstream !== digests.get(key)).length;
    moved += older;
    filled += page.length - older;
    behind = page.at(-1)?.key ?? null;
    if (page.length < PAGE_SIZE) return { filled, moved };
  }
}

/** How many partitions between two keys, both included, the ledger has as filled or failed. The rest of them are missing. */
export async function knownBetween(database: Database, pipeline: string, from: string, to: string): Promise<number> {
  const [row] = await database.query<{ known: number }>(
    `SELECT pg_catalog.count(*)::pg_catalog.float8 AS known FROM repave.partition
      WHERE pipeline = $1 AND key COLLATE "C" BETWEEN $2 AND $3 AND (outcome = 'failed' OR filled_at IS NOT NULL)`,
    [pipeline, from, to],
  );
  return row?.known ?? 0;
}
