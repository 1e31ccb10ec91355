import type { PartitionOutcome } from '../contract.js';
import type { Database } from '../warehouse/database.js';
import { endFill, type RunPartition } from '../warehouse/end-fill.js';
import { isRegistered } from '../warehouse/ledger.js';
import { recordFailure } from '../warehouse/record-failure.js';
import { type RunOutcome, runOutcomes } from '../warehouse/run-outcomes.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import { endSourceQuery } from './end-source-query.js';
import type { EndBatchRequest, EndedBatch, Provenance } from './messages.js';
import { partitionFailure, partitionResult } from './partition-result.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/**
 * Ends a run's fills of several partitions for good, wherever its worker is: when it returns, the run has no query and no lock
 * left and can claim none of them any more. Records the failure, where there is one, for those that are neither filled nor
 * failed. Returns how they stand. Needs the run's database, and not its pipeline; to a name that is registered no more no
 * failure is recorded.
 */
export function endBatch(deps: ActivityDeps): (request: EndBatchRequest) => Promise<EndedBatch> {
  return answering('attempts', async (request) => {
    const { pipeline: name, ledger, keys, run, backfill, startedBy } = request;
    const failure = request.failure && { ...request.failure, backfill, startedBy };
    const place = placeOfRun(deps, request);
    const answer = await withPlannedDatabase(deps, place, ledger, async (database) => {
      const records = await isRegistered(database, name);
      const outcomes: PartitionOutcome[] = [];
      for (const before of await runOutcomes(database, name, keys, run)) {
        const outcome = await ended(database, { ...before, pipeline: name, run }, failure, records);
        if (outcome) outcomes.push(outcome);
      }
      return { outcomes };
    });
    // Behind it: a fill that has lost its transaction begins to read nothing.
    await endSourceQuery(deps, place, name, run);
    return answer;
  });
}

async function ended(
  database: Database,
  { pipeline, key, run, fill, failure: recorded }: RunOutcome & RunPartition,
  failure: (NonNullable<EndBatchRequest['failure']> & Provenance) | undefined,
  records: boolean,
): Promise<PartitionOutcome | undefined> {
  if (fill) return partitionResult(pipeline, key, fill);
  if (recorded) return partitionFailure(key, recorded.type, recorded.message);
  const work = { pipeline, key, run };
  const committed =
    failure && records ? await recordFailure(database, { ...work, ...failure }) : await endFill(database, work);
  if (committed) return partitionResult(pipeline, key, committed);
  return failure && partitionFailure(key, failure.type, failure.message);
}
