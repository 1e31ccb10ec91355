import { Failure } from '../failure.js';
import type { ChangedQuery } from '../pipeline/pipeline.js';
import type { Session } from './session.js';

/** What a relation is, in words, by its relkind. https://www.postgresql.org/docs/current/catalog-pg-class.html */
const KINDS: Readonly<Record<string, string>> = {
  f: 'a foreign table',
  m: 'a materialized view',
  v: 'a view',
};

/**
 * Throws `InvalidPipeline` where `changed: rows` counts what has no versions of rows: views, foreign tables, and what another
 * access method than PostgreSQL's own keeps; among the parts of a table too. A name that is not there is for the query to say.
 */
export async function refuseVersionless(session: Session, pipeline: string, { tables }: ChangedQuery): Promise<void> {
  if (!tables) return;
  const [found] = await session.rows<{ name: string; part: string; kind: string; isPart: boolean }>(
    `WITH RECURSIVE tree(name, relation, part) AS (
       SELECT name, pg_catalog.to_regclass(name)::pg_catalog.oid, false FROM pg_catalog.unnest($1::pg_catalog.text[]) given(name)
       UNION ALL
       SELECT tree.name, i.inhrelid, true FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.relation
     )
     SELECT tree.name, c.oid::pg_catalog.regclass::pg_catalog.text AS part, c.relkind AS kind, tree.part AS "isPart"
       FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.relation
            LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
      WHERE c.relkind <> ALL ('{r,p}') OR am.amname <> 'heap'
      LIMIT 1`,
    [tables],
  );
  if (!found) return;
  const { name, part, kind, isPart } = found;
  const what = KINDS[kind] ?? 'no plain table';
  throw new Failure(
    'InvalidPipeline',
    `\`changed: rows\` of ${pipeline} counts versions of rows, and ${isPart ? `the part ${part} of ${name}` : name} is ${what}, which has none. ` +
      'Give a query of one value in its place, such as changed: "SELECT max(updated_at) FROM … WHERE …".',
  );
}
