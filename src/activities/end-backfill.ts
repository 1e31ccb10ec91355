import { endBackfill as endBackfillIn } from '../warehouse/backfills.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { EndBackfillRequest } from './messages.js';
import { withPlannedDatabase } from './planned-database.js';
import { plannedPipeline } from './served-pipeline.js';

/** Says in the ledger how a backfill ended. Twice is once. */
export function endBackfill(deps: ActivityDeps): (request: EndBackfillRequest) => Promise<void> {
  return answering('attempts', async ({ pipeline: name, ledger, ...ending }) => {
    const pipeline = await plannedPipeline(deps, name);
    await withPlannedDatabase(deps, pipeline, ledger, (database) => endBackfillIn(database, ending));
  });
}
