import type { PartitionResult } from '../contract.js';
import { recordFailure as recordFailureIn } from '../warehouse/record-failure.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { RecordFailureRequest } from './messages.js';
import { partitionResult } from './partition-result.js';
import { withPlannedDatabase } from './planned-database.js';
import { plannedPipeline } from './served-pipeline.js';

/** Ends a run's fill for good and records its final failure; where it had committed after all, returns that and records nothing. */
export function recordFailure(
  deps: ActivityDeps,
): (request: RecordFailureRequest) => Promise<PartitionResult | undefined> {
  return answering('attempts', async ({ pipeline: name, ledger, key, ...failure }) => {
    const pipeline = await plannedPipeline(deps, name);
    const committed = await withPlannedDatabase(deps, pipeline, ledger, (database) =>
      recordFailureIn(database, { pipeline: name, key, ...failure }),
    );
    return committed && partitionResult(name, key, committed);
  });
}
