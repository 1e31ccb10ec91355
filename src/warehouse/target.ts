import type { Granularity, Window } from '../calendar/calendar.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { quotedTable } from './identifier.js';
import type { Session } from './session.js';

export interface TargetColumn {
  readonly name: string;
  /** As PostgreSQL writes it: `numeric(12,2)`. */
  readonly type: string;
  /** The type below a domain: `numeric`, `_int4` for an array. */
  readonly baseType: string;
  readonly notNull: boolean;
  /** Filled where an INSERT leaves it out: a default or an identity. */
  readonly hasDefault: boolean;
  /** Cannot be written: GENERATED ALWAYS AS (…) or GENERATED ALWAYS AS IDENTITY. */
  readonly generated: boolean;
}

/** What the catalog says of a pipeline's target at this moment. */
export interface Target {
  readonly oid: number;
  /** The partitioned table above it, else itself: what locks and the registry go by. */
  readonly root: number;
  /** The root's name with its schema, quoted where needed. */
  readonly name: string;
  readonly columns: readonly TargetColumn[];
  readonly partitionType: PartitionType;
  /** Triggers of users on the table, its parents or its parts. */
  readonly hasTriggers: boolean;
  /** Whether one of them runs before each inserted row, and so may drop it. */
  readonly mayDropRows: boolean;
  /** Rows that this session had inserted into the tree, or changed there, before the target was read, or NaN: see `rowsWritten`. */
  readonly writtenBefore: number;
  /** Oids of the table and every table of its tree. */
  readonly tree: readonly number[];
  /** Column sets that a unique index makes unique, NULLs included. */
  readonly uniqueKeys: readonly (readonly string[])[];
}

export const PARTITION_TYPES = ['date', 'timestamp', 'timestamptz'] as const;
export type PartitionType = (typeof PARTITION_TYPES)[number];

interface CatalogRow {
  readonly oid: number | null;
  readonly root: number;
  readonly name: string;
  readonly kind: string;
  readonly unlogged: boolean;
  readonly temporary: boolean;
  readonly foreign: boolean;
  readonly inherits: boolean;
  readonly cascades: readonly string[];
  readonly rules: readonly string[];
  readonly has_triggers: boolean;
  readonly may_drop_rows: boolean;
  readonly written: number | null;
  readonly tree: readonly number[];
  readonly columns: readonly {
    name: string;
    type: string;
    base: string;
    not_null: boolean;
    has_default: boolean;
    generated: boolean;
  }[];
  readonly unique_keys: readonly (readonly string[])[];
}

/**
 * Rows that this session has inserted into tables, or changed there, with those of its transaction up to now: PostgreSQL
 * counts them as it writes them, whoever's statement, trigger or function it is. NULL where
 * the server does not count. `tables` is an expression that gives their oids.
 * https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-STATS-FUNCTIONS
 */
export function rowsWritten(tables: string): string {
  return `(SELECT CASE WHEN pg_catalog.current_setting('track_counts')::pg_catalog.bool
                       THEN coalesce(pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_inserted(oid)
                                                  + pg_catalog.pg_stat_get_xact_tuples_updated(oid)), 0)::pg_catalog.float8 END
             FROM ${tables} AS written(oid))`;
}

// The tree by pg_inherits, since pg_partition_tree() locks every part as a reader does: see `refuseSelfRead`.
const CATALOG = `
WITH RECURSIVE named AS (
  SELECT pg_catalog.to_regclass($1)::pg_catalog.oid AS oid
), target AS (
  SELECT c.oid, c.relkind, coalesce(pg_catalog.pg_partition_root(c.oid)::pg_catalog.oid, c.oid) AS root
    FROM named JOIN pg_catalog.pg_class c ON c.oid = named.oid
), tree AS (
  SELECT root AS oid FROM target
  UNION SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.oid
                           JOIN pg_catalog.pg_class part ON part.oid = i.inhrelid AND part.relispartition
), member AS (
  SELECT c.* FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid
)
SELECT target.oid::pg_catalog.int8::pg_catalog.float8 AS oid, target.root::pg_catalog.int8::pg_catalog.float8 AS root,
       (SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = target.root) AS name,
       target.relkind::pg_catalog.text AS kind,
       EXISTS (SELECT FROM member WHERE relpersistence = 'u') AS unlogged,
       EXISTS (SELECT FROM member WHERE relpersistence = 't') AS temporary,
       EXISTS (SELECT FROM member WHERE relkind = 'f') AS "foreign",
       EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN member m ON m.oid IN (i.inhrelid, i.inhparent)
                WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class child WHERE child.oid = i.inhrelid AND child.relispartition)) AS inherits,
       ARRAY(SELECT DISTINCT k.conname::pg_catalog.text FROM pg_catalog.pg_constraint k JOIN tree ON k.confrelid = tree.oid
              WHERE k.contype = 'f' AND k.confdeltype IN ('c', 'n', 'd') ORDER BY 1) AS cascades,
       ARRAY(SELECT DISTINCT r.rulename::pg_catalog.text FROM pg_catalog.pg_rewrite r JOIN tree ON r.ev_class = tree.oid
              WHERE r.is_instead AND r.ev_type IN ('3', '4') AND r.ev_enabled <> 'D' ORDER BY 1) AS rules,
       EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN tree ON t.tgrelid = tree.oid WHERE NOT t.tgisinternal) AS has_triggers,
       -- 1: for each row, 2: before, 4: INSERT (TRIGGER_TYPE_… of the server's pg_trigger.h)
       EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN tree ON t.tgrelid = tree.oid
                WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & 7 = 7) AS may_drop_rows,
       ${rowsWritten('(SELECT oid FROM tree)')} AS written,
       ARRAY(SELECT oid::pg_catalog.int8::pg_catalog.float8 FROM tree) AS tree,
       (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
                 'name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod), 'base', base.typname,
                 'not_null', a.attnotnull OR ty.typnotnull, 'has_default', a.atthasdef OR a.attidentity <> '',
                 'generated', a.attgenerated <> '' OR a.attidentity = 'a') ORDER BY a.attnum), '[]')
          FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type ty ON ty.oid = a.atttypid
          CROSS JOIN LATERAL (
            WITH RECURSIVE below AS (
              SELECT ty.oid, ty.typname, ty.typtype, ty.typbasetype
              UNION ALL
              SELECT b.oid, b.typname, b.typtype, b.typbasetype
                FROM below JOIN pg_catalog.pg_type b ON below.typtype = 'd' AND b.oid = below.typbasetype)
            SELECT typname FROM below WHERE typtype <> 'd') base
         WHERE a.attrelid = target.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
       (SELECT coalesce(pg_catalog.json_agg(names), '[]') FROM (
          SELECT pg_catalog.json_agg(a.attname) AS names
            FROM pg_catalog.pg_index i
            CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
            JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
           WHERE i.indrelid = target.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
             AND k.place <= i.indnkeyatts
           GROUP BY i.indexrelid
          -- NULLs are all different to an ordinary unique index, and the same to the check.
          HAVING pg_catalog.bool_and(a.attnotnull)) u) AS unique_keys
  FROM target`;

/**
 * Reads a pipeline's target from the catalog, by the search path of the session's transaction.
 * Throws `SchemaMismatch` where it is not there or lacks the partition column, `InvalidPipeline` where it is of a kind whose
 * fills could not keep the promises: each with the reason.
 */
export async function readTarget(session: Session, pipeline: Pipeline): Promise<Target> {
  const written = quotedTable(pipeline.target);
  const [row] = await session.rows<CatalogRow>(CATALOG, [written]);
  if (!row?.oid) {
    throw new Failure(
      'SchemaMismatch',
      `The target ${written} of ${pipeline.name} is not there (searched with the role's search_path). Create it, or mend \`target\`.`,
    );
  }
  refuseUnsafe(row, pipeline.name, written);
  const columns = row.columns.map((column) => ({
    name: column.name,
    type: column.type,
    baseType: column.base,
    notNull: column.not_null,
    hasDefault: column.has_default,
    generated: column.generated,
  }));
  return {
    oid: row.oid,
    root: row.root,
    name: row.name,
    columns,
    partitionType: partitionType(columns, pipeline, written),
    hasTriggers: row.has_triggers,
    mayDropRows: row.may_drop_rows,
    writtenBefore: row.written ?? NaN,
    tree: row.tree,
    uniqueKeys: row.unique_keys,
  };
}

function refuseUnsafe(row: CatalogRow, pipeline: string, target: string): void {
  const refuse = (reason: string): never => {
    throw new Failure('InvalidPipeline', `The target ${target} of ${pipeline} ${reason}`);
  };
  if (row.kind === 'v' || row.kind === 'm') refuse('is a view: name the table itself.');
  if (row.foreign) refuse('is or holds a foreign table: its rows would not commit together with the ledger.');
  if (row.kind !== 'r' && row.kind !== 'p') refuse('is no table.');
  if (row.unlogged)
    refuse('is UNLOGGED: a crash would empty it and the ledger would still say filled. ALTER TABLE … SET LOGGED.');
  if (row.temporary) refuse('is a temporary table.');
  if (row.inherits) {
    refuse('takes part in table inheritance: a DELETE would reach other tables. Use declarative partitioning.');
  }
  if (row.rules.length > 0) {
    throw new Failure(
      'SchemaMismatch',
      `The target ${target} of ${pipeline} has rules that put another statement in place of INSERT or DELETE (${row.rules.join(', ')}): a fill could not tell what became of its rows. The old rows stand. Drop them, or use triggers.`,
    );
  }
  if (row.cascades.length > 0) {
    refuse(
      `is referenced by foreign keys that cascade (${row.cascades.join(', ')}): each fill would delete or change the rows that refer to it. ` +
        'Make them ON DELETE NO ACTION DEFERRABLE INITIALLY DEFERRED.',
    );
  }
}

function partitionType(columns: readonly TargetColumn[], pipeline: Pipeline, target: string): PartitionType {
  const { column, by, zone } = pipeline.partition;
  const found = columns.find(({ name }) => name === column);
  if (!found) {
    throw new Failure(
      'SchemaMismatch',
      `The target ${target} has no column ${JSON.stringify(column)}, by which ${pipeline.name} is partitioned. It has: ${columns.map(({ name }) => name).join(', ')}.`,
    );
  }
  const type = PARTITION_TYPES.find((known) => known === found.baseType);
  if (!type) {
    throw new Failure(
      'InvalidPipeline',
      `The partition column ${JSON.stringify(column)} of ${target} is of type ${found.type}: expected date, timestamp or timestamptz.`,
    );
  }
  refuseAmbiguous(by, zone, type, pipeline.name);
  return type;
}

/** Two windows must never be one range of the column's values. */
function refuseAmbiguous(by: Granularity, zone: string, type: PartitionType, pipeline: string): void {
  if (by !== 'hour') return;
  if (type === 'date') {
    throw new Failure(
      'InvalidPipeline',
      `${pipeline} is by hour, and its partition column is a date: all hours of a day would be one. Use a timestamptz column.`,
    );
  }
  if (type === 'timestamp' && zone !== 'UTC') {
    throw new Failure(
      'InvalidPipeline',
      `${pipeline} is by hour in ${zone}, and its partition column is a timestamp without time zone: where the clock goes back, two hours would be one. Use timestamptz, or zone: UTC.`,
    );
  }
}

/** A window's bounds as values of the partition column's own type, half-open. */
export function bounds(window: Window, type: PartitionType): readonly [lower: string, upper: string] {
  switch (type) {
    case 'date':
      return [window.date, window.endDate];
    case 'timestamp':
      return [window.localStart, window.localEnd];
    case 'timestamptz':
      return [window.start, window.end];
    default:
      return type satisfies never;
  }
}
