import type { Grid } from '../calendar/calendar.js';
import { keyAt } from '../calendar/range.js';
import type { Database } from './database.js';
import type { KeySpan } from './partition-states.js';
import type { Session } from './session.js';
import { begin, commit, type Pins } from './transaction.js';

/** A partition whose rows are not those that its last fill left. */
export interface Finding {
  readonly key: string;
  /** Rows by the ledger. */
  readonly ledgerRows: number;
  readonly tableRows: number;
  /**
   * What it counts as from now on: `missing` where its rows are gone, `outdated` where they are others; `failed` stays `failed`,
   * which goes before both.
   */
  readonly state: 'missing' | 'outdated' | 'failed';
}

/** A finding, and which fill it was found of: its time as text, since a Date would lose the microseconds. */
export interface Differing extends Finding {
  readonly filledAt: string;
}

/** SQL of a row `p`: what was found of it stands. A fill of an older version leaves the finding, which then is before it. */
const STANDS = '(p.found_at IS NOT NULL AND (p.filled_at IS NULL OR p.filled_at < p.found_at))';

/**
 * Marks those of which the fill that was looked at still stands, and returns them: missing is what has never been filled, and
 * outdated what has a fingerprint of no pipeline. The history of its fills stays, and what was found is on record until the
 * partition is filled again.
 */
export async function markFound(
  session: Session,
  database: Database,
  pins: Pins,
  {
    pipeline,
    fingerprint,
    differing,
  }: { readonly pipeline: string; readonly fingerprint: string; readonly differing: readonly Differing[] },
): Promise<Differing[]> {
  await begin(session, database, pins);
  const marked = await session.rows<{ key: string }>(
    `UPDATE repave.partition AS p
        SET rows = CASE WHEN found.rows > 0 THEN p.rows END,
            filled_at = CASE WHEN found.rows > 0 THEN p.filled_at END,
            fingerprint = CASE WHEN found.rows > 0 THEN p.fingerprint || ' verify' END,
            found_at = pg_catalog.clock_timestamp(), found_ledger_rows = p.rows, found_table_rows = found.rows
       FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.text[]), pg_catalog.unnest($4::pg_catalog.timestamptz[]),
                       pg_catalog.unnest($5::pg_catalog.int8[])) AS found(key, filled_at, rows)
      WHERE p.pipeline = $1 AND p.key = found.key AND p.filled_at = found.filled_at AND p.fingerprint = $2
     RETURNING p.key`,
    [
      pipeline,
      fingerprint,
      differing.map(({ key }) => key),
      differing.map(({ filledAt }) => filledAt),
      differing.map(({ tableRows }) => tableRows),
    ],
  );
  await commit(session);
  const keys = new Set(marked.map(({ key }) => key));
  return differing.filter(({ key }) => keys.has(key));
}

/** What `verify` has found in a partition that was not filled since. */
export interface StandingFinding {
  readonly at: Date;
  /** Rows by the ledger. */
  readonly ledgerRows: number;
  readonly tableRows: number;
}

/** The finding of one partition; undefined where there is none, or it was filled since. */
export async function standingFinding(
  database: Database,
  pipeline: string,
  key: string,
): Promise<StandingFinding | undefined> {
  const [row] = await database.query<StandingFinding>(
    `SELECT p.found_at AS at, p.found_ledger_rows::pg_catalog.float8 AS "ledgerRows",
            p.found_table_rows::pg_catalog.float8 AS "tableRows"
       FROM repave.partition p WHERE p.pipeline = $1 AND p.key = $2 AND ${STANDS}`,
    [pipeline, key],
  );
  return row;
}

/** Partitions that a verification passes over, as they are to be filled again anyway. */
export interface PassedOver {
  /** They hold rows of another version of the pipeline than workers have. */
  readonly outdated: number;
  /** What was found in them earlier stands. */
  readonly found: number;
  /** The first and the last of these. */
  readonly firstFound: string | null;
  readonly lastFound: string | null;
}

/** How many partitions in some spans are passed over. Keys of another calendar, which the pipeline once had, count for nothing. */
export async function passedOver(
  database: Database,
  { name, partition }: { readonly name: string; readonly partition: Grid },
  spans: readonly KeySpan[],
): Promise<PassedOver> {
  const [row] = await database.query<PassedOver>(
    `SELECT pg_catalog.count(*) FILTER (WHERE NOT ${STANDS} AND p.filled_at IS NOT NULL AND p.fingerprint <> r.fingerprint)::pg_catalog.float8 AS outdated,
            pg_catalog.count(*) FILTER (WHERE ${STANDS})::pg_catalog.float8 AS found,
            pg_catalog.min(p.key COLLATE "C") FILTER (WHERE ${STANDS}) AS "firstFound",
            pg_catalog.max(p.key COLLATE "C") FILTER (WHERE ${STANDS}) AS "lastFound"
       FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[])) AS s(first, last)
       JOIN repave.partition p ON p.pipeline = $1 AND p.key COLLATE "C" >= s.first AND p.key COLLATE "C" <= s.last
       JOIN repave.pipeline r ON r.name = p.pipeline
      WHERE pg_catalog.translate(p.key, '0123456789', '0000000000') = $4`,
    [
      name,
      spans.map(({ from }) => from),
      spans.map(({ to }) => to),
      keyAt(partition, '1970-01-01T00:00:00Z').replace(/\d/g, '0'),
    ],
  );
  if (!row) throw new Error('An aggregate gave no row');
  return row;
}
