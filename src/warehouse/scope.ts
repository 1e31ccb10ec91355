import { createHash } from 'node:crypto';
import { Failure } from '../failure.js';
import type { Pipeline, Scope } from '../pipeline/pipeline.js';
import { sqlstate } from './errors.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/**
 * Whether no row can be of both scopes: a column of both has different values in them. By text, so only for scopes whose
 * values are in canonical form ({@link canonicalScope}): `01` and `1` are one integer. Two pipelines of one target need it.
 */
export function disjointScopes(a: Scope = {}, b: Scope = {}): boolean {
  return Object.entries(a).some(([column, value]) => Object.hasOwn(b, column) && b[column] !== value);
}

/** A scope in words for a message, with what the pipeline's own settings say: `tenant = "acme"`; of all rows: `no scope`. */
export function describeScope(scope: Scope = {}): string {
  const parts = sorted(scope).map(([column, value]) => `${column} = ${JSON.stringify(value)}`);
  return parts.length > 0 ? parts.join(', ') : 'no scope';
}

/** 32 bits of a canonical scope; 0 of none. */
export function scopeHash(scope: Scope): number {
  const parts = sorted(scope);
  return parts.length === 0 ? 0 : createHash('sha256').update(JSON.stringify(parts)).digest().readInt32BE(0);
}

/** Built-in types of which each value has one text, besides enums; `numeric` has once its trailing zeros are gone. */
const ONE_TEXT = [
  ...['int2', 'int4', 'int8', 'numeric', 'oid', 'bool', 'text', 'varchar', 'bpchar', 'char', 'name', 'uuid'],
  ...['date', 'timestamp', 'timestamptz', 'bytea', 'inet', 'cidr', 'macaddr'],
];

/**
 * The pipeline's scope with each value in the one text that the target's type writes it in, so that scopes can be compared
 * and locked by text; `{}` where it has none. The session's transaction must be pinned, since the text of a time hangs on it.
 *
 * Throws `SchemaMismatch` for a column that the target lacks, `InvalidPipeline` for one of a type that can write a value in
 * more than one way, and for a value that the type cannot read.
 */
export async function canonicalScope(session: Session, pipeline: Pipeline, target: Target): Promise<Scope> {
  const given = sorted(pipeline.scope ?? {});
  if (given.length === 0) return {};
  const types = await scopeTypes(
    session,
    target,
    given.map(([column]) => column),
  );
  const canonical: Record<string, string> = {};
  for (const [column, value] of given) {
    const type = types.get(column);
    if (!type) {
      throw new Failure(
        'SchemaMismatch',
        `The scope of ${pipeline.name} names the column ${JSON.stringify(column)}, which ${target.name} does not have. It has: ${target.columns.map(({ name }) => name).join(', ')}.`,
      );
    }
    if (!type.plain) {
      throw new Failure(
        'InvalidPipeline',
        `The scope of ${pipeline.name} is by ${JSON.stringify(column)}, which is of type ${type.name}: two texts may be one value of it. Expected a column of an integer, numeric, text, boolean, uuid, date, timestamp or enum type, with a deterministic collation.`,
      );
    }
    canonical[column] = await canonicalValue(session, pipeline, column, value, type);
  }
  return canonical;
}

interface ScopeType {
  /** As PostgreSQL writes it. */
  readonly name: string;
  /** The type below a domain as a cast takes it, without a length, which would cut a value. */
  readonly cast: string;
  readonly numeric: boolean;
  readonly plain: boolean;
}

async function scopeTypes(
  session: Session,
  target: Target,
  columns: readonly string[],
): Promise<ReadonlyMap<string, ScopeType>> {
  const rows = await session.rows<ScopeType & { column: string }>(
    `SELECT a.attname::pg_catalog.text AS "column", pg_catalog.format_type(a.atttypid, a.atttypmod) AS name,
            pg_catalog.format_type(base.oid, -1) AS "cast",
            base.oid = 'pg_catalog.numeric'::pg_catalog.regtype AS "numeric",
            (base.typtype = 'e' OR base.typnamespace = 'pg_catalog'::pg_catalog.regnamespace AND base.typname = ANY ($3::pg_catalog.name[]))
              AND coalesce(c.collisdeterministic, true) AS plain
       FROM pg_catalog.pg_attribute a
       LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
       CROSS JOIN LATERAL (
         WITH RECURSIVE below AS (
           SELECT oid, typname, typnamespace, typtype, typbasetype FROM pg_catalog.pg_type WHERE oid = a.atttypid
           UNION ALL
           SELECT b.oid, b.typname, b.typnamespace, b.typtype, b.typbasetype
             FROM below JOIN pg_catalog.pg_type b ON below.typtype = 'd' AND b.oid = below.typbasetype)
         SELECT * FROM below WHERE typtype <> 'd') base
      WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY ($2::pg_catalog.name[])`,
    [target.oid, columns, ONE_TEXT],
  );
  return new Map(rows.map(({ column, ...type }) => [column, type]));
}

async function canonicalValue(
  session: Session,
  pipeline: Pipeline,
  column: string,
  value: string,
  { name, cast, numeric }: ScopeType,
): Promise<string> {
  const read = `$1::${cast}`;
  try {
    const [row] = await session.rows<{ text: string }>(
      `SELECT (${numeric ? `pg_catalog.trim_scale(${read})` : read})::pg_catalog.text AS text`,
      [value],
    );
    if (row) return row.text;
  } catch (error) {
    if (!sqlstate(error)?.startsWith('22')) throw error;
    throw new Failure(
      'InvalidPipeline',
      `The scope of ${pipeline.name} gives the column ${JSON.stringify(column)} a value that its type ${name} cannot read. Mend \`scope\`.`,
    );
  }
  throw new Error('A cast gave no row');
}

function sorted(scope: Scope): [column: string, value: string][] {
  return Object.entries(scope).sort(([a], [b]) => (a < b ? -1 : 1));
}
