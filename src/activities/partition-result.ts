import type { PartitionResult } from '../contract.js';
import type { FillOutcome } from '../warehouse/fill-request.js';

/** A committed fill, as the workflow `partition` returns it. */
export function partitionResult(pipeline: string, key: string, fill: FillOutcome): PartitionResult {
  const { rows, deleted, seconds, warnings } = fill;
  return { pipeline, key, rows, deleted, seconds, warnings };
}
