import type { Database } from './database.js';
import type { CheckOutcome } from './fill-request.js';

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

export type HistoryEntry =
  | {
      readonly kind: 'fill';
      readonly at: Date;
      readonly run: string;
      readonly attempt: number;
      readonly rows: number;
      readonly deleted: number;
      readonly seconds: number;
      readonly checks: readonly CheckOutcome[];
      readonly warnings: readonly string[];
      readonly fingerprint: string;
    }
  | {
      readonly kind: 'failure';
      readonly at: Date;
      readonly run: string;
      readonly attempt: number;
      readonly type: string;
      readonly message: string;
    };

/** Every committed fill and final failure of one partition, the newest first. */
export async function partitionHistory(database: Database, pipeline: string, key: string): Promise<HistoryEntry[]> {
  const fills = await database.query<Omit<Extract<HistoryEntry, { kind: 'fill' }>, 'kind'>>(
    `SELECT filled_at AS at, run, attempt, rows_inserted::pg_catalog.float8 AS rows, rows_deleted::pg_catalog.float8 AS deleted,
            seconds, checks, warnings, fingerprint
       FROM repave.fill WHERE pipeline = $1 AND key = $2`,
    [pipeline, key],
  );
  const failures = await database.query<Omit<Extract<HistoryEntry, { kind: 'failure' }>, 'kind'>>(
    `SELECT failed_at AS at, run, attempt, type, message FROM repave.failure WHERE pipeline = $1 AND key = $2`,
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

/** Partitions of a pipeline by state, as far as the ledger has rows of them: `missing` needs the calendar. */
export async function pipelineCounts(
  database: Database,
  pipeline: string,
  fingerprint: string,
): Promise<PipelineCounts> {
  const [row] = await database.query<PipelineCounts>(
    `SELECT pg_catalog.count(*) FILTER (WHERE outcome = 'filled' AND fingerprint = $2)::pg_catalog.float8 AS filled,
            pg_catalog.count(*) FILTER (WHERE outcome = 'failed')::pg_catalog.float8 AS failed,
            pg_catalog.count(*) FILTER (WHERE outcome = 'filled' AND fingerprint <> $2)::pg_catalog.float8 AS outdated,
            pg_catalog.max(key COLLATE "C") FILTER (WHERE filled_at IS NOT NULL) AS newest
       FROM repave.partition WHERE pipeline = $1`,
    [pipeline, fingerprint],
  );
  return row ?? { filled: 0, failed: 0, outdated: 0, newest: null };
}
