import type { ActivityDeps } from './activity-deps.js';
import { awaitPartition } from './await-partition.js';
import { endBackfill } from './end-backfill.js';
import { endFill } from './end-fill.js';
import { fillPartition } from './fill-partition.js';
import { nextKeys } from './next-keys.js';
import { planBackfill } from './plan-backfill.js';
import { planPartition } from './plan-partition.js';
import { recordFailure } from './record-failure.js';

/** Activities of the main queue: what holds a connection for as long as a fill takes. */
export function createFillActivities(deps: ActivityDeps) {
  return { fillPartition: fillPartition(deps) };
}

/** Activities of the control queue: what plans, looks, waits and records. */
export function createControlActivities(deps: ActivityDeps) {
  return {
    planBackfill: planBackfill(deps),
    nextKeys: nextKeys(deps),
    endBackfill: endBackfill(deps),
    planPartition: planPartition(deps),
    endFill: endFill(deps),
    recordFailure: recordFailure(deps),
    awaitPartition: awaitPartition(deps),
  };
}

export type FillActivities = ReturnType<typeof createFillActivities>;
export type ControlActivities = ReturnType<typeof createControlActivities>;
