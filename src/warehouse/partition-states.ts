import type { Database } from './database.js';
import { type ComesAfter, upstreamDigests } from './upstream.js';

/** What a plan needs of one partition's row in the ledger: enough for its state, and what it holds now. */
export interface StateRow {
  readonly key: string;
  readonly outcome: 'filled' | 'failed';
  /** Of the last committed fill; null where there was none. */
  readonly rows: number | null;
  readonly fingerprint: string | null;
  readonly filledAt: Date | null;
  /** What the pipeline's `changed` said of the source before the rows of the fill that stands were read. */
  readonly sourceVersion: string | null;
  /**
   * True where a partition that it comes after was filled again since it was filled itself, or it is not known what it was filled
   * from. Absent: it comes after none, or they were not asked.
   */
  readonly upstreamMoved?: boolean;
}

/** Keys from one to another, both included. */
export interface KeySpan {
  readonly from: string;
  readonly to: string;
}

/**
 * The ledger's rows of a pipeline's partitions in some spans of keys, by key. As many are held at once as the spans have
 * partitions, and no failure's message is read: whoever walks a large calendar asks page by page. With `after` it is looked
 * also whether what they come after has moved.
 */
export async function partitionStates(
  database: Database,
  pipeline: string,
  spans: readonly KeySpan[],
  after?: ComesAfter,
): Promise<Map<string, StateRow>> {
  const rows = await database.query<StateRow & { readonly upstream: string | null }>(
    // Keys of one granularity sort in the order of time only byte by byte.
    `SELECT p.key, p.outcome, p.rows::pg_catalog.float8 AS rows, p.fingerprint, p.filled_at AS "filledAt",
            p.source_version AS "sourceVersion", p.upstream
       FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[])) AS s(first, last)
      CROSS JOIN LATERAL (
            SELECT key, outcome, rows, fingerprint, filled_at, source_version, upstream FROM repave.partition
             WHERE pipeline = $1 AND key COLLATE "C" >= s.first AND key COLLATE "C" <= s.last) p`,
    [pipeline, spans.map(({ from }) => from), spans.map(({ to }) => to)],
  );
  const filled = rows.filter(({ filledAt }) => filledAt !== null).map(({ key }) => key);
  const digests = after && filled.length > 0 ? await upstreamDigests(database, after, filled) : undefined;
  return new Map(
    rows.map(({ upstream, ...row }) => {
      const now = digests?.get(row.key);
      return [row.key, now === undefined ? row : { ...row, upstreamMoved: upstream !== now }];
    }),
  );
}
