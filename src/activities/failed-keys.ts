import { failedKeys as failedKeysIn } from '../warehouse/backfills.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { FailedKeysRequest } from './messages.js';
import { PAGE_SIZE } from './next-keys.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/** The next partitions of a backfill that have failed and were not filled since, in the calendar's order. Writes nothing. */
export function failedKeys(deps: ActivityDeps): (request: FailedKeysRequest) => Promise<readonly string[]> {
  return answering('attempts', async (request) =>
    withPlannedDatabase(deps, placeOfRun(deps, request), request.ledger, (database) =>
      failedKeysIn(database, request.run, request.after, PAGE_SIZE),
    ),
  );
}
