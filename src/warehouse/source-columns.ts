import { sqlstate } from './errors.js';
import type { Session } from './session.js';

/** A column of a query, as the database says where the query runs. */
export interface SourceColumn {
  readonly name: string;
  /** As PostgreSQL writes it: `numeric(12,2)`. Of a domain: the type below it. */
  readonly type: string;
  readonly typeId: number;
  /** The type's own name without its schema: `int4`, `_int4` for an array. */
  readonly typeName: string;
}

/** The columns of a query, by its Parse alone: nothing is planned or run. Rejects with the server's verdict on the query. */
export async function readSourceColumns(session: Session, query: string): Promise<readonly SourceColumn[]> {
  const described = await session.describe(query);
  const types = await session.rows<{ type: string; typeName: string }>(
    `SELECT pg_catalog.format_type(t.oid, given.modifier) AS type, t.typname::pg_catalog.text AS "typeName"
       FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int4[]))
            WITH ORDINALITY AS given(oid, modifier, place)
       JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) given.oid
      ORDER BY given.place`,
    [described.map(({ typeId }) => typeId), described.map(({ modifier }) => modifier)],
  );
  return described.map(({ name, typeId }, i) => {
    const found = types[i];
    if (!found) throw new Error('A type of the query’s columns is not in the catalog');
    return { name, typeId, ...found };
  });
}

/**
 * Whether a column that the server calls text is an untyped literal, such as NULL or 'x': only that becomes a number where a
 * UNION asks for one. In a transaction, of which it makes a savepoint.
 */
export async function isLiteral(session: Session, query: string, place: number, columns: number): Promise<boolean> {
  const asked = Array.from({ length: columns }, (_, i) => (i === place ? 'NULL::pg_catalog.int4' : 'NULL'));
  await session.query('SAVEPOINT repave_literal');
  try {
    await session.describe(`(\n${query}\n) UNION ALL (SELECT ${asked.join(', ')})`);
    return true;
  } catch (error) {
    await session.query('ROLLBACK TO SAVEPOINT repave_literal');
    // No number, so it was read as one.
    if (sqlstate(error)?.startsWith('22')) return true;
    if (sqlstate(error) === '42804') return false;
    throw error;
  }
}
