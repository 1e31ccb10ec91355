import type { PartitionResult } from '../contract.js';
import type { ActivityDeps } from './activity-deps.js';
import { awaitPartition } from './await-partition.js';
import { endBackfill } from './end-backfill.js';
import { endFill } from './end-fill.js';
import { fillPartition } from './fill-partition.js';
import type {
  AwaitedPartition,
  AwaitPartitionRequest,
  EndBackfillRequest,
  EndFillRequest,
  FillPartitionRequest,
  NextKeysRequest,
  PlanBackfillRequest,
  PlannedBackfill,
  PlannedPartition,
  PlanPartitionRequest,
  RecordFailureRequest,
} from './messages.js';
import { nextKeys } from './next-keys.js';
import { planBackfill } from './plan-backfill.js';
import { planPartition } from './plan-partition.js';
import { recordFailure } from './record-failure.js';

/** Activities of the main queue: what holds a connection for as long as a fill takes. */
export interface FillActivities {
  fillPartition(request: FillPartitionRequest): Promise<PartitionResult>;
}

/** Activities of the control queue: what plans, looks, waits and records. */
export interface ControlActivities {
  planBackfill(request: PlanBackfillRequest): Promise<PlannedBackfill>;
  nextKeys(request: NextKeysRequest): Promise<readonly string[]>;
  endBackfill(request: EndBackfillRequest): Promise<void>;
  planPartition(request: PlanPartitionRequest): Promise<PlannedPartition>;
  endFill(request: EndFillRequest): Promise<PartitionResult | undefined>;
  recordFailure(request: RecordFailureRequest): Promise<PartitionResult | undefined>;
  awaitPartition(request: AwaitPartitionRequest): Promise<AwaitedPartition>;
}

export function createFillActivities(deps: ActivityDeps): FillActivities {
  return { fillPartition: fillPartition(deps) };
}

export function createControlActivities(deps: ActivityDeps): ControlActivities {
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
