import type { Pipeline } from '../pipeline/pipeline.js';
import { batchesOf } from '../plan/batches.js';
import { keysFrom } from '../plan/keys-from.js';
import { runKeys } from '../warehouse/backfills.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { BackfillPlan, NextBatchesRequest, NextKeysRequest, PlannedBackfill } from './messages.js';
import { withPlannedDatabase } from './planned-database.js';
import { plannedPipeline } from './served-pipeline.js';

/** Keys in one answer: about 10 kB. */
export const PAGE_SIZE = 500;

/** The next keys of a backfill after its cursor, in the asked order; none when it is through. Writes nothing. */
export function nextKeys(deps: ActivityDeps): (request: NextKeysRequest) => Promise<readonly string[]> {
  return answering('attempts', async (request) => page(deps, await plannedPipeline(deps, request.pipeline), request));
}

/** The same keys in batches: those that follow each other in the calendar together. */
export function nextBatches(
  deps: ActivityDeps,
): (request: NextBatchesRequest) => Promise<readonly (readonly string[])[]> {
  return answering('attempts', async (request) => {
    const pipeline = await plannedPipeline(deps, request.pipeline);
    return pageOfBatches(pipeline, await page(deps, pipeline, request), request.batch);
  });
}

/** The first page of a plan, so that a short backfill needs no second activity: of its range, or of its list's first `keys`. */
export function firstPage(
  pipeline: Pipeline,
  { range, batch }: Pick<BackfillPlan, 'range' | 'batch'>,
  keys: readonly string[] = range ? keysFrom(pipeline.partition, range, undefined, PAGE_SIZE) : [],
): Pick<PlannedBackfill, 'keys' | 'batches'> {
  if (batch === undefined) return { keys };
  return { keys: [], batches: pageOfBatches(pipeline, keys, batch) };
}

/** A page's keys in batches. One that the page's end may have cut is the next page's. */
export function pageOfBatches(pipeline: Pipeline, keys: readonly string[], batch: number): string[][] {
  return batchesOf(pipeline.partition, keys, batch, keys.length >= PAGE_SIZE);
}

async function page(
  deps: ActivityDeps,
  pipeline: Pipeline,
  { ledger, range, list = '', cursor }: NextKeysRequest,
): Promise<readonly string[]> {
  if (range) return keysFrom(pipeline.partition, range, cursor.key, PAGE_SIZE);
  return withPlannedDatabase(deps, pipeline, ledger, (database) => runKeys(database, list, cursor.taken, PAGE_SIZE));
}
