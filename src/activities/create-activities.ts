import type { PartitionResult, PartitionsResult } from '../contract.js';
import type { ActivityDeps } from './activity-deps.js';
import { awaitPartition } from './await-partition.js';
import { endBackfill } from './end-backfill.js';
import { endBatch } from './end-batch.js';
import { endFill } from './end-fill.js';
import { fillBatch } from './fill-batch.js';
import { fillPartition } from './fill-partition.js';
import { awaitPartitions } from './await-partitions.js';
import { awaitRun } from './await-run.js';
import { failedKeys } from './failed-keys.js';
import { noteBackfill } from './note-backfill.js';
import type {
  AwaitedPartition,
  AwaitedPartitions,
  AwaitPartitionRequest,
  AwaitPartitionsRequest,
  AwaitedRun,
  AwaitRunRequest,
  EndBackfillRequest,
  EndBatchRequest,
  EndedBatch,
  EndedBackfill,
  EndFillRequest,
  FailedKeysRequest,
  FillBatchRequest,
  FillPartitionRequest,
  NextBatchesRequest,
  NextKeysRequest,
  NoteBackfillRequest,
  NoticeRequest,
  PlanBackfillRequest,
  PlanDownstreamRequest,
  PlannedBackfill,
  PlannedDownstream,
  PlannedPartition,
  PlanPartitionRequest,
  RecordFailureRequest,
} from './messages.js';
import { nextBatches, nextKeys } from './next-keys.js';
import { planBackfill } from './plan-backfill.js';
import { planDownstream } from './plan-downstream.js';
import { planPartition } from './plan-partition.js';
import { recordFailure } from './record-failure.js';
import { tell } from './tell.js';

/** Activities of the main queue: what holds a connection for as long as a fill takes. */
export interface FillActivities {
  fillPartition(request: FillPartitionRequest): Promise<PartitionResult>;
  fillBatch(request: FillBatchRequest): Promise<PartitionsResult>;
}

/** Activities of the control queue: what plans, looks, waits and records. */
export interface ControlActivities {
  planBackfill(request: PlanBackfillRequest): Promise<PlannedBackfill>;
  planDownstream(request: PlanDownstreamRequest): Promise<PlannedDownstream>;
  nextKeys(request: NextKeysRequest): Promise<readonly string[]>;
  nextBatches(request: NextBatchesRequest): Promise<readonly (readonly string[])[]>;
  failedKeys(request: FailedKeysRequest): Promise<readonly string[]>;
  noteBackfill(request: NoteBackfillRequest): Promise<void>;
  endBackfill(request: EndBackfillRequest): Promise<EndedBackfill | undefined>;
  planPartition(request: PlanPartitionRequest): Promise<PlannedPartition>;
  endFill(request: EndFillRequest): Promise<PartitionResult | undefined>;
  endBatch(request: EndBatchRequest): Promise<EndedBatch>;
  recordFailure(request: RecordFailureRequest): Promise<PartitionResult | undefined>;
  awaitPartition(request: AwaitPartitionRequest): Promise<AwaitedPartition>;
  awaitPartitions(request: AwaitPartitionsRequest): Promise<AwaitedPartitions>;
  tell(request: NoticeRequest): Promise<void>;
  awaitRun(request: AwaitRunRequest): Promise<AwaitedRun>;
}

export function createFillActivities(deps: ActivityDeps): FillActivities {
  return { fillPartition: fillPartition(deps), fillBatch: fillBatch(deps) };
}

export function createControlActivities(deps: ActivityDeps): ControlActivities {
  return {
    planBackfill: planBackfill(deps),
    planDownstream: planDownstream(deps),
    nextKeys: nextKeys(deps),
    nextBatches: nextBatches(deps),
    failedKeys: failedKeys(deps),
    noteBackfill: noteBackfill(deps),
    endBackfill: endBackfill(deps),
    planPartition: planPartition(deps),
    endFill: endFill(deps),
    endBatch: endBatch(deps),
    recordFailure: recordFailure(deps),
    awaitPartition: awaitPartition(deps),
    awaitPartitions: awaitPartitions(deps),
    tell: tell(deps),
    awaitRun: awaitRun(),
  };
}
