import type { Grid } from '../calendar/calendar.js';
import { FIRST_YEAR } from '../calendar/key.js';
import { KeyError } from '../calendar/key-error.js';
import { countBetween, keyAt, keyBefore, newestFinished } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import type { BackfillInput } from '../contract.js';
import { InputFailure, type Wording } from '../pipeline/input-failure.js';
import type { PlannedPipeline } from './planned-pipeline.js';

/** A run of partitions that was asked for, both ends included. */
export interface Span {
  readonly from: string;
  readonly to: string;
}

/** What may be filled, as of a time: from the pipeline's `start` to the newest partition, finished or not as asked. */
export interface Limits {
  readonly start?: string;
  readonly newest: string;
  /** For `last`: as of the schedule's time. */
  readonly newestAsOf: string;
  /** As of the schedule's time before that: `last` also takes in what was finished since. Absent: there is none. */
  readonly newestBefore?: string;
  /** The unfinished partition of that time. */
  readonly current: string;
}

/** The limits of a request as of now; `asOf`, a schedule's time, counts as now where it is later. `before`: its time before that. */
export function limitsOf(
  { includeUnfinished }: Pick<BackfillInput, 'includeUnfinished'>,
  { partition, start }: PlannedPipeline,
  now: Date,
  asOf: Date = now,
  before?: Date,
): Limits {
  const newest = (at: Date): string => (includeUnfinished ? keyAt : newestFinished)(partition, at.toISOString());
  return {
    start,
    newest: newest(now),
    newestAsOf: newest(asOf > now ? now : asOf),
    ...(before && { newestBefore: newest(before) }),
    current: keyAt(partition, now.toISOString()),
  };
}

/**
 * The spans that an input asks for, in the order it names them; not yet held against the limits, except where the input
 * leaves an end open. Throws `InvalidInput` for keys that are none of the pipeline's, and for a range the wrong way round.
 */
export function askedSpans(input: BackfillInput, pipeline: PlannedPipeline, limits: Limits): Span[] {
  const grid = pipeline.partition;
  if (input.keys) return input.keys.map((entry, index) => entrySpan(entry, `keys[${index}]`, pipeline));
  if (input.last !== undefined) {
    const count = Math.max(input.last, finishedSince(grid, limits)) + (input.lookback ?? pipeline.lookback);
    return [{ from: stepsBack(grid, limits, count - 1), to: limits.newestAsOf }];
  }
  if (input.from === undefined) {
    if (limits.start === undefined) {
      throw new InputFailure(
        ({ field }) =>
          `${pipeline.name} has no start, so it has no first partition: expected ${field('from')}, or a \`start\` in the pipeline.`,
      );
    }
    return [{ from: limits.start, to: limits.newest }];
  }
  judgeKey(input.from, 'from', pipeline);
  if (input.to === undefined)
    return [{ from: input.from, to: input.from > limits.newest ? input.from : limits.newest }];
  judgeKey(input.to, 'to', pipeline);
  const { from, to } = input;
  if (from > to) throw wrongWayRound(({ field }) => [field('from'), field('to')], from, to);
  return [{ from, to }];
}

/** How many partitions a span has; none where its ends are the wrong way round. */
export function spanSize(grid: Grid, { from, to }: Span): number {
  return from > to ? 0 : countBetween(grid, from, to);
}

function entrySpan(entry: string, field: string, pipeline: PlannedPipeline): Span {
  const dots = entry.indexOf('..');
  if (dots < 0) {
    judgeKey(entry, field, pipeline);
    return { from: entry, to: entry };
  }
  const from = entry.slice(0, dots);
  const to = entry.slice(dots + 2);
  judgeKey(from, field, pipeline, ', before the dots,');
  judgeKey(to, field, pipeline, ', behind the dots,');
  if (from > to)
    throw wrongWayRound(({ field: name }) => [`${name(field)}, before the dots,`, 'behind them'], from, to);
  return { from, to };
}

function wrongWayRound(ends: (wording: Wording) => readonly [string, string], from: string, to: string): InputFailure {
  return new InputFailure((wording) => {
    const [first, last] = ends(wording);
    return `${first} is ${from}, which comes after ${to} (${last}): expected the earlier one first.`;
  });
}

/** Throws `InvalidInput` for a key that names no partition of the pipeline; `field` says where it was given, and `part` where in that. */
export function judgeKey(key: string, field: string, pipeline: PlannedPipeline, part = ''): void {
  try {
    windowOf(pipeline.partition, key);
  } catch (error) {
    if (!(error instanceof KeyError)) throw error;
    const { by } = pipeline.partition;
    throw new InputFailure(
      (wording) =>
        `${wording.field(field)}${part} is ${error.given}, which ${error.problem}; ${pipeline.name} is by ${by}: expected ${error.expected}.`,
    );
  }
}

/** Partitions that were finished after the schedule's time before this one, up to this one. */
function finishedSince(grid: Grid, { newestBefore, newestAsOf }: Limits): number {
  if (newestBefore === undefined || newestBefore >= newestAsOf) return 0;
  return countBetween(grid, newestBefore, newestAsOf) - 1;
}

/** The key `steps` before the newest, or the pipeline's start where that comes first. */
function stepsBack(grid: Grid, { newestAsOf, start }: Limits, steps: number): string {
  if (start !== undefined && newestAsOf <= start) return newestAsOf;
  if (start !== undefined && countBetween(grid, start, newestAsOf) <= steps) return start;
  try {
    return keyBefore(grid, newestAsOf, steps);
  } catch (error) {
    if (!(error instanceof KeyError)) throw error;
    throw new InputFailure(
      ({ field }) =>
        `${field('last')} goes back to years before ${FIRST_YEAR}, which have no partitions: expected fewer.`,
    );
  }
}
