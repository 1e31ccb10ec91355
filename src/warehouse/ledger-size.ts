import type { Database } from './database.js';
import { PRUNABLE } from './prunable.js';
import { instantBefore } from './prune.js';

/** Pages of a table that are looked at. */
const SAMPLED_PAGES = 200;

/** How large one of the ledger's tables is. */
export interface TableSize {
  /** Such as `fill`. */
  readonly table: string;
  readonly rows: number;
  /** Rows that `repave prune` would remove. */
  readonly prunable: number;
  /** Bytes with its indexes. */
  readonly bytes: number;
  /** Whether the rows are estimated. */
  readonly sampled: boolean;
}

/**
 * The sizes of the tables that grow with each run, and of `partition`, of which nothing is pruned. Small tables are counted;
 * of large ones some pages are, so that this takes no longer the larger they are.
 */
export async function ledgerSizes(database: Database, keepMs: number): Promise<TableSize[]> {
  const before = await instantBefore(database, keepMs);
  const sizes: TableSize[] = [];
  for (const { table, old } of [...PRUNABLE, { table: 'partition', old: '$1::pg_catalog.timestamptz IS NULL' }]) {
    const [size] = await database.query<{ bytes: number; percent: number }>(
      `SELECT pg_catalog.pg_total_relation_size(c.oid)::pg_catalog.float8 AS bytes,
              least(100, 100.0 * $2 / greatest(1, pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::pg_catalog.int8))::pg_catalog.float8 AS percent
         FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass('repave.' || $1)`,
      [table, SAMPLED_PAGES],
    );
    if (!size) continue;
    const { bytes, percent } = size;
    const [counted] = await database.query<{ rows: number; prunable: number }>(
      `SELECT pg_catalog.count(*)::pg_catalog.float8 AS rows, pg_catalog.count(*) FILTER (WHERE ${old})::pg_catalog.float8 AS prunable
         FROM repave.${table} t ${percent < 100 ? 'TABLESAMPLE SYSTEM ($2)' : 'WHERE $2::pg_catalog.float8 IS NOT NULL'}`,
      [before, percent],
    );
    const estimated = (rows = 0): number => Math.round((rows * 100) / percent);
    sizes.push({
      table,
      rows: estimated(counted?.rows),
      prunable: estimated(counted?.prunable),
      bytes,
      sampled: percent < 100,
    });
  }
  return sizes;
}
