import type { BackfillInput } from '../contract.js';
import { InputFailure } from '../pipeline/input-failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';

/**
 * Whether an input's partitions are asked of their source, by the pipeline's `changed`. Throws `InvalidInput` where they are to
 * be and the pipeline has none: that nothing has changed is not known then.
 */
export function asksSource(
  { only }: Pick<BackfillInput, 'only'>,
  pipeline: Pick<Pipeline, 'name' | 'changed'>,
): boolean {
  if (!only?.includes('changed')) return false;
  if (pipeline.changed) return true;
  throw new InputFailure(
    ({ field }) =>
      `${field('only')} has changed, and ${pipeline.name} has no \`changed\` by which its source says so: give it one, such as ` +
      '`changed: rows` for a query from plain tables, or leave changed out.',
  );
}
