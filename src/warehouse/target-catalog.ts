import { type RowCounters, rowCounters } from './row-counters.js';

/** One row of {@link CATALOG}: what the catalog says of a table by the name that a pipeline gives it. */
export interface CatalogRow {
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
  readonly counters: RowCounters | null;
  readonly tree: readonly number[];
  readonly columns: readonly {
    name: string;
    type: string;
    base: string;
    base_id: number;
    element: string | null;
    not_null: boolean;
    has_default: boolean;
    generated: boolean;
  }[];
  readonly unique_keys: readonly (readonly string[])[];
}

/** The table that $1 names, with its tree: by pg_inherits, since pg_partition_tree() locks every part as a reader does. */
export const CATALOG = `
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
              WHERE r.ev_type IN ('3', '4') AND r.ev_enabled <> 'D' ORDER BY 1) AS rules,
       EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN tree ON t.tgrelid = tree.oid WHERE NOT t.tgisinternal) AS has_triggers,
       -- 1: for each row, 2: before, 4: INSERT (TRIGGER_TYPE_… of the server's pg_trigger.h)
       EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN tree ON t.tgrelid = tree.oid
                WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & 7 = 7) AS may_drop_rows,
       ${rowCounters('(SELECT oid FROM tree)')} AS counters,
       ARRAY(SELECT oid::pg_catalog.int8::pg_catalog.float8 FROM tree) AS tree,
       (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
                 'name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod), 'base', base.typname,
                 'base_id', base.oid::pg_catalog.int8, 'element', element.typname,
                 'not_null', a.attnotnull OR base.typnotnull,
                 -- A domain has the default of the one below it as its own.
                 'has_default', a.atthasdef OR a.attidentity <> '' OR ty.typdefault IS NOT NULL,
                 'generated', a.attgenerated <> '' OR a.attidentity = 'a') ORDER BY a.attnum), '[]')
          FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type ty ON ty.oid = a.atttypid
          CROSS JOIN LATERAL (
            WITH RECURSIVE below AS (
              SELECT ty.oid, ty.typname, ty.typtype, ty.typbasetype, ty.typelem, ty.typcategory, ty.typnotnull
              UNION ALL
              SELECT b.oid, b.typname, b.typtype, b.typbasetype, b.typelem, b.typcategory, b.typnotnull OR below.typnotnull
                FROM below JOIN pg_catalog.pg_type b ON below.typtype = 'd' AND b.oid = below.typbasetype)
            SELECT oid, typname, typelem, typcategory, typnotnull FROM below WHERE typtype <> 'd') base
          LEFT JOIN LATERAL (
            WITH RECURSIVE below AS (
              SELECT e.typname, e.typtype, e.typbasetype FROM pg_catalog.pg_type e
               WHERE base.typcategory = 'A' AND e.oid = base.typelem
              UNION ALL
              SELECT b.typname, b.typtype, b.typbasetype
                FROM below JOIN pg_catalog.pg_type b ON below.typtype = 'd' AND b.oid = below.typbasetype)
            SELECT typname FROM below WHERE typtype <> 'd') element ON true
         WHERE a.attrelid = target.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
       (SELECT coalesce(pg_catalog.json_agg(names), '[]') FROM (
          SELECT pg_catalog.json_agg(a.attname) AS names
            FROM pg_catalog.pg_index i
            CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
            JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
            JOIN pg_catalog.pg_opclass o ON o.oid = i.indclass[k.place::pg_catalog.int4 - 1]
           WHERE i.indrelid = target.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
             AND k.place <= i.indnkeyatts
           GROUP BY i.indexrelid
          -- NULLs are all different to an ordinary unique index, and the same to the check. By another operator class or collation
          -- than the column's, values that are equal may be two, unless to both collations only the same bytes are equal.
          HAVING pg_catalog.bool_and(a.attnotnull AND o.opcdefault AND (
                   a.attcollation = i.indcollation[k.place::pg_catalog.int4 - 1]
                   OR NOT EXISTS (SELECT FROM pg_catalog.pg_collation c
                                   WHERE NOT c.collisdeterministic
                                     AND c.oid IN (a.attcollation, i.indcollation[k.place::pg_catalog.int4 - 1]))))) u) AS unique_keys
  FROM target`;
