import type { PartitionResult } from '../contract.js';
import { endFill as endFillIn } from '../warehouse/end-fill.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import { endSourceQuery } from './end-source-query.js';
import type { EndFillRequest } from './messages.js';
import { partitionResult } from './partition-result.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/**
 * Ends a run's fill for good, wherever its worker is: when it returns, the run has no query and no lock left and can claim no
 * more. Returns the fill if one had committed. Needs the run's database, and not its pipeline.
 */
export function endFill(deps: ActivityDeps): (request: EndFillRequest) => Promise<PartitionResult | undefined> {
  return answering('attempts', async (request) => {
    const { pipeline: name, ledger, key, run } = request;
    const place = placeOfRun(deps, request);
    const committed = await withPlannedDatabase(deps, place, ledger, (database) =>
      endFillIn(database, { pipeline: name, key, run }),
    );
    // Behind it: a fill that has lost its transaction begins to read nothing.
    await endSourceQuery(deps, place, name, run);
    return committed && partitionResult(name, key, committed);
  });
}
