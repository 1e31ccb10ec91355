import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { canonicalScope } from './scope.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/**
 * The fingerprint of a pipeline as workers have registered it; undefined where none has. Throws `InvalidInput` where they have
 * it with another target, partition or scope than its file: that one's windows would be other rows.
 */
export async function registeredFingerprint(
  session: Session,
  pipeline: Pipeline,
  target: Target,
): Promise<string | undefined> {
  const { column, by, zone } = pipeline.partition;
  const [row] = await session.rows<{ same: boolean; fingerprint: string }>(
    `SELECT (target, partition_column, by, zone, scope) = ($2, $3, $4, $5, $6::pg_catalog.jsonb) AS same, fingerprint
       FROM repave.pipeline WHERE name = $1`,
    [pipeline.name, target.name, column, by, zone, JSON.stringify(await canonicalScope(session, pipeline, target))],
  );
  if (!row || row.same) return row?.fingerprint;
  throw otherGrid(pipeline);
}

/** Why a command by a file here must not read or record windows of workers that have another one. */
export function otherGrid({ name }: Pipeline): Failure {
  return new Failure(
    'InvalidInput',
    `Workers have ${name} with another target, partition or scope than its file here, and so with other windows. Start them with this file, or come back with theirs.`,
  );
}
