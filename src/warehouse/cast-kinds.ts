import type { CastKind, ColumnPair } from './compare-columns.js';
import { loss } from './lossy-casts.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

interface Cast {
  readonly context: 'i' | 'a' | 'e' | null;
}

// Arrays are cast as their elements are. By the types' names: the query may run on another server, which numbers its own.
const CASTS = `
SELECT (SELECT k.castcontext::pg_catalog.text FROM pg_catalog.pg_cast k
         WHERE k.castsource = coalesce(NULLIF(source.typelem, 0), source.oid) AND k.casttarget = coalesce(NULLIF(base.typelem, 0), base.oid)
       ) AS context
  FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[]))
       WITH ORDINALITY AS given(source, target, place)
  LEFT JOIN pg_catalog.pg_type source ON source.oid = pg_catalog.to_regtype(given.source)
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = $1::pg_catalog.oid AND a.attname = given.target
 CROSS JOIN LATERAL (
   WITH RECURSIVE below AS (
     SELECT t.oid, t.typtype, t.typbasetype, t.typelem FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
     UNION ALL
     SELECT t.oid, t.typtype, t.typbasetype, t.typelem
       FROM below JOIN pg_catalog.pg_type t ON below.typtype = 'd' AND t.oid = below.typbasetype)
   SELECT oid, typelem FROM below WHERE typtype <> 'd') base
 ORDER BY given.place`;

/**
 * How each pair's value comes into its column, where the server has said that it can. What has no cast of its own goes through
 * its text, by assignment.
 */
export async function castKinds(
  session: Session,
  target: Pick<Target, 'oid'>,
  pairs: readonly ColumnPair[],
): Promise<CastKind[]> {
  const casts = await session.rows<Cast>(CASTS, [
    target.oid,
    pairs.map(({ column }) => column.type),
    pairs.map(({ into }) => into.name),
  ]);
  return pairs.map(({ column, into, selected }, i) => {
    if (selected?.literal !== undefined) return 'implicit';
    if (column.type === into.type) return 'same';
    if (loss({ name: column.typeName, text: column.type }, { name: into.baseType, text: into.type }) !== undefined)
      return 'lossy';
    return casts[i]?.context === 'i' ? 'implicit' : 'assignment';
  });
}
