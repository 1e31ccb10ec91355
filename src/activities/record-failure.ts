import type { PartitionResult } from '../contract.js';
import { endFill } from '../warehouse/end-fill.js';
import { isRegistered } from '../warehouse/ledger.js';
import { recordFailure as recordFailureIn } from '../warehouse/record-failure.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { RecordFailureRequest } from './messages.js';
import { partitionResult } from './partition-result.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/**
 * Ends a run's fill for good and records its final failure; where it had committed after all, returns that and records nothing.
 * Needs the run's database, and not its pipeline: of a name that is registered no more, since its pipeline has another now, it
 * ends the fill and records nothing, which nobody would look for under that name.
 */
export function recordFailure(
  deps: ActivityDeps,
): (request: RecordFailureRequest) => Promise<PartitionResult | undefined> {
  return answering('attempts', async ({ pipeline: name, ledger, key, database: planned, source, ...failure }) => {
    const place = placeOfRun(deps, { pipeline: name, database: planned, source });
    const work = { pipeline: name, key, ...failure };
    const committed = await withPlannedDatabase(deps, place, ledger, async (database) =>
      (await isRegistered(database, name)) ? recordFailureIn(database, work) : endFill(database, work),
    );
    return committed && partitionResult(name, key, committed);
  });
}
