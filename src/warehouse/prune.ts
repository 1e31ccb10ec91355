import { Failure } from '../failure.js';
import type { Database } from './database.js';
import { PRUNABLE, type PrunableTable } from './prunable.js';

/** Rows looked at in one transaction, which takes milliseconds. */
const PAGE = 2_000;

export interface PruneRequest {
  /** Milliseconds: what is over for longer goes. */
  readonly keepMs: number;
  /** Count, and remove nothing. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/** What one transaction has done. */
export interface PrunedPage {
  /** Such as `fill`. */
  readonly table: string;
  /** Rows looked at. */
  readonly seen: number;
  /** Rows removed, or with `dryRun` those that would be. */
  readonly rows: number;
  /** Bytes of those rows in their table, without its indexes. */
  readonly bytes: number;
}

/**
 * Removes from the ledger what is over and old, as {@link PRUNABLE} says, and tells after each page of rows, which is a
 * transaction of its own: a prune that is ended has done less, and no harm. Fills go on meanwhile, none waits for it; it may
 * run several times at once.
 *
 * Throws `PermissionDenied` where the role may not delete from the ledger; rejects with `signal.reason` between two pages.
 */
export async function* prune(database: Database, { keepMs, dryRun, signal }: PruneRequest): AsyncGenerator<PrunedPage> {
  if (!dryRun) await refuseOtherRoles(database);
  const before = await instantBefore(database, keepMs);
  for (const table of PRUNABLE) {
    let after: readonly string[] | null = null;
    for (;;) {
      signal.throwIfAborted();
      const page: Page | undefined = await prunePage(database, table, before, after, dryRun);
      if (!page?.last) break;
      yield { table: table.table, seen: page.seen, rows: page.rows, bytes: page.bytes };
      if (page.seen < PAGE || !page.hasOld) break;
      after = page.last;
    }
  }
}

/** The instant so many milliseconds ago by the database's clock, which wrote the ledger's times. */
export async function instantBefore(database: Database, ms: number): Promise<string> {
  const [row] = await database.query<{ now: number }>(
    'SELECT EXTRACT(epoch FROM pg_catalog.clock_timestamp())::pg_catalog.float8 * 1000 AS now',
  );
  return new Date((row?.now ?? 0) - ms).toISOString();
}

interface Page {
  readonly seen: number;
  /** The key of the last row looked at; null where there was none. */
  readonly last: readonly string[] | null;
  /** Whether some of the rows were written before the cutoff, as far as the table's order tells. */
  readonly hasOld: boolean;
  readonly rows: number;
  readonly bytes: number;
}

async function prunePage(
  database: Database,
  { table, key, writtenAt, old }: PrunableTable,
  before: string,
  after: readonly string[] | null,
  dryRun: boolean,
): Promise<Page | undefined> {
  const columns = key.map(([column]) => column).join(', ');
  const behind = key.map(([, type], i) => `$${i + 2}::pg_catalog.${type}`).join(', ');
  const same = key.map(([column]) => `t.${column} = page.${column}`).join(' AND ');
  const descending = key.map(([column]) => `${column} DESC`).join(', ');
  const [row] = await database.query<Page>(
    `WITH page AS MATERIALIZED (
       SELECT ${columns}, ${writtenAt === undefined ? 'true' : `${writtenAt} < $1`} AS has_old FROM repave.${table}
        ${after ? `WHERE (${columns}) > (${behind})` : ''} ORDER BY ${columns} LIMIT ${PAGE}
     ), gone AS (
       ${dryRun ? `SELECT t.* FROM repave.${table} t, page` : `DELETE FROM repave.${table} t USING page`}
        WHERE ${same} AND (${old})
       ${dryRun ? '' : 'RETURNING t.*'}
     )
     SELECT (SELECT pg_catalog.count(*)::pg_catalog.int4 FROM page) AS seen,
            (SELECT ARRAY[${key.map(([column]) => `${column}::pg_catalog.text`).join(', ')}] FROM page ORDER BY ${descending} LIMIT 1) AS last,
            (SELECT coalesce(pg_catalog.bool_or(has_old), false) FROM page) AS "hasOld",
            pg_catalog.count(*)::pg_catalog.int4 AS rows,
            coalesce(pg_catalog.sum(pg_catalog.pg_column_size(gone)), 0)::pg_catalog.float8 AS bytes
       FROM gone`,
    [before, ...(after ?? [])],
  );
  return row;
}

/** The ledger of fills and failures is append-only to workers. */
async function refuseOtherRoles(database: Database): Promise<void> {
  const [row] = await database.query<{ role: string; lacking: string[] }>(
    `SELECT current_user AS role,
            ARRAY(SELECT t FROM pg_catalog.unnest($1::pg_catalog.text[]) t
                   WHERE NOT pg_catalog.has_table_privilege('repave.' || t, 'DELETE')) AS lacking`,
    [PRUNABLE.map(({ table }) => table)],
  );
  if (!row || row.lacking.length === 0) return;
  throw new Failure(
    'PermissionDenied',
    `The role ${row.role} may not delete from ${row.lacking.map((table) => `repave.${table}`).join(', ')}. ` +
      'Set REPAVE_MIGRATE_URL to the URL of the role that owns the ledger, as for `repave migrate`.',
  );
}
