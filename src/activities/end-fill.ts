import type { PartitionResult } from '../contract.js';
import { endFill as endFillIn } from '../warehouse/end-fill.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { EndFillRequest } from './messages.js';
import { partitionResult } from './partition-result.js';
import { withPlannedDatabase } from './planned-database.js';
import { plannedPipeline } from './served-pipeline.js';

/**
 * Ends a run's fill for good, wherever its worker is: when it returns, the run has no query and no lock left and can claim no
 * more. Returns the fill if one had committed.
 */
export function endFill(deps: ActivityDeps): (request: EndFillRequest) => Promise<PartitionResult | undefined> {
  return answering('attempts', async ({ pipeline: name, ledger, key, run }) => {
    const pipeline = await plannedPipeline(deps, name);
    const committed = await withPlannedDatabase(deps, pipeline, ledger, (database) =>
      endFillIn(database, { pipeline: name, key, run }),
    );
    return committed && partitionResult(name, key, committed);
  });
}
