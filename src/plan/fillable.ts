import { windowOf } from '../calendar/window.js';
import { Failure } from '../failure.js';
import type { PlannedPipeline } from './planned-pipeline.js';
import { cutToLimits, disjointSpans } from './left-out.js';
import type { Limits, Span } from './selection.js';

/** What may be filled of a request. */
export interface Fillable {
  /** At least one, without common partitions, in the calendar's order. */
  readonly spans: readonly [Span, ...Span[]];
  /** Said to people: what was left out, with counts. */
  readonly notes: readonly string[];
}

/**
 * Holds the spans asked for against the limits. Throws `InvalidInput` where nothing is left, naming the nearest partition
 * that could be filled.
 */
export function fillable(asked: readonly Span[], pipeline: PlannedPipeline, limits: Limits): Fillable {
  const { spans, notes } = cutToLimits(disjointSpans(asked), pipeline, limits);
  const [first, ...others] = spans;
  if (!first) throw nothingLeft(asked, pipeline, limits, notes);
  return { spans: [first, ...others], notes };
}

function nothingLeft(
  asked: readonly Span[],
  pipeline: PlannedPipeline,
  { start, newest, current }: Limits,
  notes: readonly string[],
): Failure {
  const because = notes.length > 0 ? ` ${notes.join(' ')}` : '';
  if (start !== undefined && start > newest) {
    const { end } = windowOf(pipeline.partition, start);
    return new Failure(
      'InvalidInput',
      `${pipeline.name} has nothing to fill yet: its first partition ${start} is finished at ${end}.${because}`,
    );
  }
  const afterNewest = asked.some(({ to }) => to > newest);
  const nearest =
    afterNewest || start === undefined
      ? `${newest}, ${newest === current ? 'the current one' : 'the newest finished one'}`
      : `${start}, its start`;
  return new Failure(
    'InvalidInput',
    `Nothing is left to fill in ${pipeline.name}.${because} The nearest partition is ${nearest}.`,
  );
}
