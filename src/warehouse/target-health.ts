import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { quotedTable } from './identifier.js';

/** Rows from which a table is large enough for the server's own autovacuum settings to let too many dead rows gather. */
const LARGE_ROWS = 1_000_000;
/** The part of a large table's rows that may be dead before autovacuum comes. */
const LARGE_SCALE_FACTOR = 0.02;
const LARGE_SETTINGS = `autovacuum_vacuum_scale_factor = ${LARGE_SCALE_FACTOR}, autovacuum_analyze_scale_factor = ${LARGE_SCALE_FACTOR}`;
/** Tables whose statement is written out; a target has perhaps thousands of parts. */
const MOST_STATEMENTS = 20;

/** What the server knows of the dead rows that fills leave in a target: each replaces rows, and VACUUM makes room of the old. */
export interface TargetHealth {
  /** With its schema, quoted where needed. */
  readonly target: string;
  /** Tables that hold its rows: 1, or the leaves of a partitioned one. */
  readonly tables: number;
  /** By the server's estimate; undefined where no table was ever analyzed. */
  readonly estimatedRows: number | undefined;
  /** By the server's statistics, which a crash resets. */
  readonly deadRows: number;
  /** When autovacuum last came to any of them, or null: never, or not since the statistics were reset. */
  readonly lastAutovacuum: Date | null;
  /** The largest part of a table's rows that may be dead before autovacuum comes. */
  readonly scaleFactor: number;
  /** A sentence that says what is wrong and why; absent: nothing is. */
  readonly problem?: string;
  /** What the tables' owner may run to mend it, at most {@link MOST_STATEMENTS}. */
  readonly statements: readonly string[];
}

interface TableRow {
  readonly target: string;
  readonly name: string;
  readonly rows: number | null;
  readonly dead: number;
  readonly vacuumed: Date | null;
  readonly enabled: boolean;
  /** Whether the table has a scale factor or a switch of its own. */
  readonly own: boolean;
  readonly scale: number;
}

const TABLES = `
WITH RECURSIVE tree AS (
  SELECT pg_catalog.to_regclass($1)::pg_catalog.oid AS oid
  UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.oid
)
SELECT (SELECT pg_catalog.format('%I.%I', n.nspname, t.relname) FROM pg_catalog.pg_class t
          JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace WHERE t.oid = pg_catalog.to_regclass($1)) AS target,
       pg_catalog.format('%I.%I', n.nspname, c.relname) AS name,
       NULLIF(GREATEST(c.reltuples::pg_catalog.float8, NULLIF(pg_catalog.pg_stat_get_live_tuples(c.oid), 0)::pg_catalog.float8), -1) AS rows,
       coalesce(pg_catalog.pg_stat_get_dead_tuples(c.oid), 0)::pg_catalog.float8 AS dead,
       pg_catalog.pg_stat_get_last_autovacuum_time(c.oid) AS vacuumed,
       coalesce(o.enabled, true) AND pg_catalog.current_setting('autovacuum')::pg_catalog.bool AS enabled,
       o.scale IS NOT NULL AS own,
       coalesce(o.scale, pg_catalog.current_setting('autovacuum_vacuum_scale_factor')::pg_catalog.float8) AS scale
  FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL (
   SELECT pg_catalog.max(option_value) FILTER (WHERE option_name = 'autovacuum_vacuum_scale_factor')::pg_catalog.float8 AS scale,
          pg_catalog.bool_and(option_value::pg_catalog.bool) FILTER (WHERE option_name = 'autovacuum_enabled') AS enabled
     FROM pg_catalog.pg_options_to_table(c.reloptions)) o
 WHERE c.relkind = 'r'
 ORDER BY rows DESC NULLS LAST, name`;

/**
 * Says how a pipeline's target stands with VACUUM, from the catalog and the server's statistics: no table is read. Undefined
 * where the target is not there or holds no table. Throws `DatabaseUnavailable`.
 */
export async function targetHealth(
  database: Database,
  pipeline: Pick<Pipeline, 'target'>,
): Promise<TargetHealth | undefined> {
  const tables = await database.query<TableRow>(TABLES, [quotedTable(pipeline.target)]);
  const [first] = tables;
  if (!first) return undefined;
  const rows = tables.flatMap((table) => table.rows ?? []);
  const vacuumed = tables.flatMap((table) => table.vacuumed ?? []);
  return {
    target: first.target,
    tables: tables.length,
    estimatedRows: rows.length === 0 ? undefined : sum(rows),
    deadRows: sum(tables.map(({ dead }) => dead)),
    lastAutovacuum: vacuumed.length === 0 ? null : new Date(Math.max(...vacuumed.map((time) => time.getTime()))),
    scaleFactor: Math.max(...tables.map(({ scale }) => scale)),
    ...judge(first.target, tables),
  };
}

function judge(target: string, tables: readonly TableRow[]): Pick<TargetHealth, 'problem' | 'statements'> {
  const off = tables.filter(({ enabled }) => !enabled);
  if (off.length > 0) {
    return {
      problem: `Autovacuum is off for ${which(target, off)}: the rows that each fill replaces would never make room for new ones.`,
      statements: written(off, 'autovacuum_enabled = on'),
    };
  }
  const large = tables.filter(({ rows, own, scale }) => (rows ?? 0) > LARGE_ROWS && !own && scale > LARGE_SCALE_FACTOR);
  const [largest] = large;
  if (!largest) return { statements: [] };
  const dead = Math.round((largest.rows ?? 0) * largest.scale);
  return {
    problem:
      `${which(target, large)} holds about ${Math.round(largest.rows ?? 0)} rows and has the server’s autovacuum_vacuum_scale_factor of ${largest.scale}: ` +
      `about ${dead} rows must be dead before autovacuum comes, so fills make the table grow instead of using the room of the rows they replace.`,
    statements: written(large, LARGE_SETTINGS),
  };
}

function which(target: string, tables: readonly TableRow[]): string {
  const [first] = tables;
  if (!first || first.name === target) return target;
  return tables.length === 1 ? first.name : `${first.name} (and ${tables.length - 1} more of ${target})`;
}

function written(tables: readonly TableRow[], settings: string): string[] {
  return tables.slice(0, MOST_STATEMENTS).map(({ name }) => `ALTER TABLE ${name} SET (${settings});`);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
