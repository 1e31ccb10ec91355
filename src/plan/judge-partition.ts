import type { PartitionInput } from '../contract.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { fillable } from './fillable.js';
import { judgeKey, limitsOf } from './selection.js';

/**
 * Judges the key of a partition started alone, as a backfill's are judged. Throws `InvalidInput` where it is no partition of
 * the pipeline, is unfinished (unless `includeUnfinished`), in the future or before the pipeline's start.
 */
export function judgePartition(input: PartitionInput, pipeline: Pipeline, now: Date): void {
  judgeKey(input.key, 'key', pipeline);
  fillable([{ from: input.key, to: input.key }], pipeline, limitsOf(input, pipeline, now));
}
