import type { Window } from '../calendar/calendar.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { bounds } from './partition-type.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/** A table that is partitioned by RANGE on the partition column alone. */
export interface PartedTable {
  readonly schema: string;
  readonly table: string;
  readonly owner: string;
  /** Whether the session's role is the owner. */
  readonly own: boolean;
  /** Null: the database's default. */
  readonly tablespace: string | null;
  /** Whether its deletes are published by the whole old row. */
  readonly identityFull: boolean;
  /** Whether it has a default part, which takes what no other part does. */
  readonly hasDefault: boolean;
}

/** A range of the partition column that no part of the table takes. */
export interface MissingPart {
  readonly parent: PartedTable;
  /** In the text form of the column's type, half-open. */
  readonly lower: string;
  readonly upper: string;
}

interface Range {
  readonly lower: string;
  readonly upper: string;
}

interface PartRow extends Range {
  readonly oid: number;
  readonly parted: boolean;
}

const PARENT = `
SELECT n.nspname AS schema, c.relname AS table, r.rolname AS owner, r.rolname = CURRENT_USER AS own, s.spcname AS tablespace,
       c.relreplident = 'f' AS "identityFull", p.partdefid <> 0 AS "hasDefault"
  FROM pg_catalog.pg_partitioned_table p JOIN pg_catalog.pg_class c ON c.oid = p.partrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
  LEFT JOIN pg_catalog.pg_tablespace s ON s.oid = c.reltablespace
 WHERE c.oid = $1::pg_catalog.oid AND p.partstrat = 'r' AND p.partnatts = 1 AND a.attname = $2`;

// The bounds as the server writes them in this session, whose zone and style of dates are pinned. Without the part's oid, by
// which pg_get_expr() would lock it.
const parts = (type: string): string => `
SELECT part.oid::pg_catalog.int8::pg_catalog.float8 AS oid, part.relkind = 'p' AS parted,
       GREATEST(edge.lower, wanted.lower)::pg_catalog.text AS lower, LEAST(edge.upper, wanted.upper)::pg_catalog.text AS upper
  FROM (SELECT $2::${type} AS lower, $3::${type} AS upper) wanted
  JOIN pg_catalog.pg_inherits i ON i.inhparent = $1::pg_catalog.oid JOIN pg_catalog.pg_class part ON part.oid = i.inhrelid
 CROSS JOIN LATERAL pg_catalog.regexp_match(
         pg_catalog.pg_get_expr(part.relpartbound, 0::pg_catalog.oid),
         '^FOR VALUES FROM \\((?:''([^'']*)''|MINVALUE|MAXVALUE)\\) TO \\((?:''([^'']*)''|MINVALUE|MAXVALUE)\\)$') AS written
 CROSS JOIN LATERAL (SELECT coalesce(written[1], '-infinity')::${type} AS lower, coalesce(written[2], 'infinity')::${type} AS upper) edge
 WHERE written IS NOT NULL AND edge.lower < wanted.upper AND edge.upper > wanted.lower
 ORDER BY edge.lower`;

/**
 * The parts of a partitioned target that rows of the window would need and that are not there, in order: none where its parts
 * take the whole window, several where one in the window's midst is there. A default part counts for nothing.
 *
 * Throws `InvalidPipeline` where the target is not the table that is partitioned by RANGE on the partition column alone.
 */
export async function missingParts(
  session: Session,
  pipeline: Pipeline,
  target: Target,
  window: Window,
): Promise<MissingPart[]> {
  const { column } = pipeline.partition;
  const [lower, upper] = bounds(window, target.partitionType);
  const found =
    target.oid === target.root
      ? await missingBelow(session, target.oid, column, target.partitionType, { lower, upper })
      : undefined;
  if (found) return found;
  const what =
    target.oid === target.root
      ? `${target.name} is not`
      : `the one that it names is a part of ${target.name}: name that, if it is so partitioned`;
  throw new Failure(
    'InvalidPipeline',
    `${pipeline.name} has \`create: true\`, for which its target must be declaratively partitioned by RANGE (${column}) alone, and ${what}. Leave \`create\` out, or partition the table so.`,
  );
}

/** Undefined where the table is partitioned otherwise, or not at all. */
async function missingBelow(
  session: Session,
  oid: number,
  column: string,
  partitionType: string,
  within: Range,
): Promise<MissingPart[] | undefined> {
  const [parent] = await session.rows<PartedTable>(PARENT, [oid, column]);
  if (!parent) return undefined;
  const type = `pg_catalog.${partitionType}`;
  const [range] = await session.rows<Range>(
    `SELECT $1::${type}::pg_catalog.text AS lower, $2::${type}::pg_catalog.text AS upper`,
    [within.lower, within.upper],
  );
  if (!range) throw new Error('A SELECT of two values gave no row');
  const missing: MissingPart[] = [];
  // Parts never overlap, so what is missing lies between the end of one and the start of the next.
  let reached = range.lower;
  for (const part of await session.rows<PartRow>(parts(type), [oid, range.lower, range.upper])) {
    if (part.lower !== reached) missing.push({ parent, lower: reached, upper: part.lower });
    // A part that is itself partitioned by other columns takes what its own parts take: those are not made here.
    if (part.parted) missing.push(...((await missingBelow(session, part.oid, column, partitionType, part)) ?? []));
    reached = part.upper;
  }
  if (reached !== range.upper) missing.push({ parent, lower: reached, upper: range.upper });
  return missing;
}
