import type { Pipeline } from '../pipeline/pipeline.js';

/** How far back each pipeline's `last` reaches by its file, by name. */
export function lookbacksOf(pipelines: ReadonlyMap<string, Pipeline>): ReadonlyMap<string, number> {
  return new Map([...pipelines.values()].map(({ name, lookback }) => [name, lookback]));
}
