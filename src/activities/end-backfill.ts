import { endBackfill as endBackfillIn } from '../warehouse/backfills.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { EndBackfillRequest, EndedBackfill } from './messages.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/** Says in the ledger how a backfill ended. Twice is once. Needs the run's database, and not its pipeline. */
export function endBackfill(deps: ActivityDeps): (request: EndBackfillRequest) => Promise<EndedBackfill> {
  return answering('attempts', async (request) => {
    const endedAt = await withPlannedDatabase(deps, placeOfRun(deps, request), request.ledger, (database) =>
      endBackfillIn(database, request),
    );
    return { endedAt: endedAt?.toISOString() };
  });
}
