import { noteBackfill as noteBackfillIn } from '../warehouse/backfills.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { NoteBackfillRequest } from './messages.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/** Says in the ledger how a backfill is set: paused and why, stopping, how many at once. Twice is once. */
export function noteBackfill(deps: ActivityDeps): (request: NoteBackfillRequest) => Promise<void> {
  return answering('attempts', async (request) => {
    await withPlannedDatabase(deps, placeOfRun(deps, request), request.ledger, (database) =>
      noteBackfillIn(database, request),
    );
  });
}
