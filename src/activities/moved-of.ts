import { Context } from '@temporalio/activity';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';
import { movedPartitions } from '../warehouse/moved-partitions.js';
import type { StateRow } from '../warehouse/partition-states.js';
import type { ActivityDeps } from './activity-deps.js';
import { placeOf } from './place.js';

/** Of some filled partitions those whose source has moved, as this worker's pipeline says. Ends with the activity's cancel. */
export async function movedOf(
  deps: ActivityDeps,
  pipeline: Pipeline,
  database: Database,
  filled: readonly StateRow[],
): Promise<ReadonlySet<string>> {
  const { cancellationSignal: signal } = Context.current();
  return deps.withSource(placeOf(pipeline), (source) =>
    movedPartitions({ database, source, signal }, pipeline, filled),
  );
}
