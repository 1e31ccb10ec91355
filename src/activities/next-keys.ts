import { keysFrom } from '../plan/keys-from.js';
import { runKeys } from '../warehouse/backfills.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { NextKeysRequest } from './messages.js';
import { withPlannedDatabase } from './planned-database.js';
import { plannedPipeline } from './served-pipeline.js';

/** Keys in one answer: about 10 kB. */
export const PAGE_SIZE = 500;

/** The next keys of a backfill after its cursor, in the asked order; none when it is through. Writes nothing. */
export function nextKeys(deps: ActivityDeps): (request: NextKeysRequest) => Promise<readonly string[]> {
  return answering('attempts', async ({ pipeline: name, ledger, range, list = '', cursor }) => {
    const pipeline = await plannedPipeline(deps, name);
    if (range) return keysFrom(pipeline.partition, range, cursor.key, PAGE_SIZE);
    return withPlannedDatabase(deps, pipeline, ledger, (database) => runKeys(database, list, cursor.taken, PAGE_SIZE));
  });
}
