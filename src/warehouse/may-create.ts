import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { quotedTable } from './identifier.js';

/** What a role needs to make the parts of a target. */
export interface PartMaking {
  readonly owner: string;
  readonly schema: string;
  /** Whether the role may act as the table's owner. */
  readonly actsAsOwner: boolean;
  /** Whether the owner may make tables in the table's schema. */
  readonly ownerMayCreate: boolean;
}

/** Whether the role that is logged in may make parts of the pipeline's target; undefined where that is not there. */
export async function partMaking(
  database: Database,
  { target }: Pick<Pipeline, 'target'>,
): Promise<PartMaking | undefined> {
  // From version 16 on a member may be one without the right to act as the other.
  const acts = database.serverVersion >= 160_000 ? 'SET' : 'MEMBER';
  const [row] = await database.query<PartMaking>(
    `SELECT r.rolname AS owner, n.nspname AS schema, pg_catalog.pg_has_role(c.relowner, $2) AS "actsAsOwner",
            pg_catalog.has_schema_privilege(c.relowner, n.oid, 'CREATE') AS "ownerMayCreate"
       FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
      WHERE c.oid = pg_catalog.to_regclass($1)`,
    [quotedTable(target), acts],
  );
  return row;
}
