import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { quotedTable } from './identifier.js';
import type { PartitionType } from './partition-type.js';
import { partitionType, unsafeReasons } from './refuse-target.js';
import type { RowCounters } from './row-counters.js';
import type { Session } from './session.js';
import { CATALOG, type CatalogRow } from './target-catalog.js';

export interface TargetColumn {
  readonly name: string;
  /** As PostgreSQL writes it: `numeric(12,2)`. */
  readonly type: string;
  /** The type below a domain: `numeric`, `_int4` for an array. */
  readonly baseType: string;
  /** Its oid. */
  readonly baseId: number;
  /** Of an array the type below the domain of its elements. */
  readonly elementType?: string;
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
  /** What this session had written in the tree before the target was read; null where the server does not count. */
  readonly before: RowCounters | null;
  /** Oids of the table and every table of its tree. */
  readonly tree: readonly number[];
  /** Column sets that a unique index makes unique, NULLs included. */
  readonly uniqueKeys: readonly (readonly string[])[];
}

/** A pipeline's target as it is, with every reason why it cannot be filled. */
export interface ExaminedTarget {
  /** Absent where it is not there; without a type where its partition column cannot be one. */
  readonly table?: Omit<Target, 'partitionType'> & { readonly partitionType?: PartitionType };
  /** What is wrong with the table. */
  readonly problems: readonly Failure[];
  /** What is wrong with its partition column. */
  readonly partitionProblem?: Failure;
}

/**
 * Reads a pipeline's target from the catalog, by the search path of the session's transaction.
 * Throws `SchemaMismatch` where it is not there or lacks the partition column, `InvalidPipeline` where it is of a kind whose
 * fills could not keep the promises: each with the reason.
 */
export async function readTarget(session: Session, pipeline: Pipeline): Promise<Target> {
  const { table, problems, partitionProblem } = await examineTarget(session, pipeline);
  const problem = problems[0] ?? partitionProblem;
  if (problem) throw problem;
  if (!table?.partitionType) throw new Error('A target without a problem has no type to be partitioned by');
  return { ...table, partitionType: table.partitionType };
}

/** {@link readTarget} for who wants to know all that is wrong. Throws no `Failure` of its own. */
export async function examineTarget(session: Session, pipeline: Pipeline): Promise<ExaminedTarget> {
  const written = quotedTable(pipeline.target);
  const [row] = await session.rows<CatalogRow>(CATALOG, [written]);
  if (!row?.oid) {
    const missing = new Failure(
      'SchemaMismatch',
      `The target ${written} of ${pipeline.name} is not there (searched with the role's search_path). Create it${pipeline.kind === 'sql' ? ` (\`repave check ${pipeline.name} --ddl\` writes the CREATE TABLE)` : ''}, or mend \`target\`.`,
    );
    return { problems: [missing] };
  }
  const problems = unsafeReasons(row, pipeline.name, written);
  const columns = row.columns.map((column) => ({
    name: column.name,
    type: column.type,
    baseType: column.base,
    baseId: column.base_id,
    elementType: column.element ?? undefined,
    notNull: column.not_null,
    hasDefault: column.has_default,
    generated: column.generated,
  }));
  let type: PartitionType | undefined;
  let partitionProblem: Failure | undefined;
  try {
    type = partitionType(columns, pipeline, written);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    partitionProblem = error;
  }
  const table = {
    oid: row.oid,
    root: row.root,
    name: row.name,
    columns,
    ...(type === undefined ? {} : { partitionType: type }),
    hasTriggers: row.has_triggers,
    mayDropRows: row.may_drop_rows,
    before: row.counters,
    tree: row.tree,
    uniqueKeys: row.unique_keys,
  };
  return { table, problems, partitionProblem };
}
