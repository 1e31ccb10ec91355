import { type PartitionFailure, type PartitionResult, shortened } from '../contract.js';
import type { FillOutcome } from '../warehouse/fill-request.js';
import type { LeftAlone } from './fill-key.js';

/** A committed fill, as the workflow `partition` returns it. */
export function partitionResult(pipeline: string, key: string, fill: FillOutcome): PartitionResult {
  const { rows, deleted, seconds, warnings, unchanged } = fill;
  return { pipeline, key, rows, deleted, seconds, warnings, ...(unchanged ? { unchanged } : {}) };
}

/** How a partition ended that was filled, or of which nothing was done. */
export function partitionEnd(pipeline: string, key: string, end: FillOutcome | LeftAlone): PartitionResult {
  if (!isLeftAlone(end)) return partitionResult(pipeline, key, end);
  return { pipeline, key, rows: 0, deleted: 0, seconds: 0, warnings: [], ...end };
}

export function isLeftAlone(end: FillOutcome | LeftAlone): end is LeftAlone {
  return 'notReady' in end || 'skipped' in end;
}

/** A final failure, as results list it. */
export function partitionFailure(key: string, type: string, message: string): PartitionFailure {
  return { key, type, message: shortened(message) };
}
