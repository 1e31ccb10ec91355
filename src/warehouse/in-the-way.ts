import type { Grid } from '../calendar/calendar.js';
import { overlapping } from '../calendar/overlap.js';
import { keysBetween, newestFinished } from '../calendar/range.js';
import { circleOf, upstreamOf } from '../pipeline/after.js';
import type { Database } from './database.js';
import type { RegisteredPipeline } from './ledger.js';
import { stateOf } from './partition-state.js';
import { type KeySpan, partitionStates, type StateRow } from './partition-states.js';
import { comesAfterOf, gridOf, overlapWith } from './upstream.js';

/** Why a partition cannot be filled yet: one that it comes after, directly or through others. */
export interface InTheWay {
  readonly pipeline: string;
  /** Absent: none of the pipeline's partitions will ever be filled, as things are. */
  readonly key?: string;
  readonly why: 'missing' | 'failed' | 'outdated' | 'not registered' | 'in a circle';
}

/** Partitions that a message names. */
const NAMED = 3;

/** `daily 2024-01-07 (missing), daily 2024-01-08 (failed) and 4 more`. */
export function inTheWayText(reasons: readonly InTheWay[]): string {
  const each = [
    ...new Set(reasons.map(({ pipeline, key, why }) => `${pipeline}${key === undefined ? '' : ` ${key}`} (${why})`)),
  ];
  const more = each.length - NAMED;
  return each.slice(0, NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** By what it is judged what stands in the way. */
export interface Surroundings {
  readonly database: Database;
  /** All of the ledger. */
  readonly registered: readonly RegisteredPipeline[];
  /** What is taken for granted of a partition, whatever the ledger says: filled, or what stands in its way. Absent: nothing. */
  readonly given?: (pipeline: string, key: string) => 'filled' | InTheWay | undefined;
  /** Partitions that are not over by then are not asked for. Absent: all are. */
  readonly finishedBy?: Date;
}

/** A pipeline that comes after others. */
export interface Dependent {
  readonly grid: Grid;
  readonly after: readonly string[];
}

/**
 * What stands in the way of a pipeline's partitions from one key to another, by their keys: partitions that overlap them, of the
 * pipelines it comes after, and are not filled, or hold what an older query made or what was read from others before those were
 * filled again; and so on up. A partition with none of these is not in the answer. No source is asked whether it has changed.
 * The ledger is looked at once for each pipeline above, by however many ways that is reached.
 */
export async function inTheWayOf(
  around: Surroundings,
  dependent: Dependent,
  span: KeySpan,
): Promise<ReadonlyMap<string, readonly InTheWay[]>> {
  const byName = new Map(around.registered.map((pipeline) => [pipeline.name, pipeline]));
  const above = new Map<string, Above>();
  for (const name of upstreamOf(dependent.after, byName)) above.set(name, aboveOf(name, byName));
  reach(around, above, dependent, span);
  for (const one of above.values()) {
    const { pipeline, grid, span: reached } = one;
    if (!pipeline || !grid || !reached) continue;
    const { name, after } = pipeline;
    const asked = [...keysBetween(grid, reached.from, reached.to)].filter((key) => !around.given?.(name, key));
    const [from, to] = [asked[0], asked.at(-1)];
    if (from === undefined || to === undefined) continue;
    one.rows = await partitionStates(
      around.database,
      name,
      [{ from, to }],
      comesAfterOf(grid, after, around.registered),
    );
    reach(around, above, { grid, after }, { from, to });
  }
  // From the top: what stands in the way there stands in the way of all below.
  for (const one of [...above.values()].reverse()) one.unfit = unfit(around, above, one);
  return reasonsOf(above, dependent, span);
}

/** A pipeline above another, and what is found out about it. */
interface Above {
  /** Why none of its partitions will ever be filled. */
  readonly never?: InTheWay;
  readonly pipeline?: RegisteredPipeline;
  readonly grid?: Grid;
  /** As far as it is reached from below, by any way. Absent: not at all. */
  span?: KeySpan;
  rows?: ReadonlyMap<string, StateRow>;
  /** Those of its partitions that nothing may be filled from, with the reason. */
  unfit?: ReadonlyMap<string, InTheWay>;
}

function aboveOf(name: string, byName: ReadonlyMap<string, RegisteredPipeline>): Above {
  const pipeline = byName.get(name);
  if (!pipeline) return { never: { pipeline: name, why: 'not registered' } };
  // Workers refuse a circle; a ledger of an older version may have one all the same, from two projects.
  if (circleOf(name, byName)) return { never: { pipeline: name, why: 'in a circle' } };
  return { pipeline, grid: gridOf(pipeline) };
}

/** Widens what is reached of the pipelines that one comes after by what overlaps some of its partitions. */
function reach(
  { finishedBy }: Surroundings,
  above: ReadonlyMap<string, Above>,
  { grid, after }: Dependent,
  span: KeySpan,
): void {
  for (const name of after) {
    const one = above.get(name);
    if (!one?.pipeline || !one.grid) continue;
    const { from, to: last } = overlapWith({ ...one.pipeline, grid: one.grid }, grid, span);
    const newest = finishedBy ? newestFinished(one.grid, finishedBy.toISOString()) : last;
    const to = last < newest ? last : newest;
    if (from > to) continue;
    const { span: reached = { from, to } } = one;
    one.span = { from: from < reached.from ? from : reached.from, to: to > reached.to ? to : reached.to };
  }
}

function unfit(
  { given }: Surroundings,
  above: ReadonlyMap<string, Above>,
  { pipeline, grid, span, rows }: Above,
): ReadonlyMap<string, InTheWay> {
  const found = new Map<string, InTheWay>();
  if (!pipeline || !grid || !span) return found;
  const { name, after, fingerprint } = pipeline;
  const over = rows ? reasonsOf(above, { grid, after }, span) : undefined;
  for (const key of keysBetween(grid, span.from, span.to)) {
    const word = given?.(name, key);
    if (word === 'filled') continue;
    const state = stateOf(rows?.get(key), fingerprint);
    const own = state === 'filled' || state === 'changed' ? over?.get(key)?.[0] : { pipeline: name, key, why: state };
    const reason = word ?? own;
    if (reason) found.set(key, reason);
  }
  return found;
}

/** What stands in the way of a pipeline's partitions, by what is known of those it comes after. */
function reasonsOf(
  above: ReadonlyMap<string, Above>,
  { grid, after }: Dependent,
  span: KeySpan,
): ReadonlyMap<string, readonly InTheWay[]> {
  const found = new Map<string, InTheWay[]>();
  const stop = (from: string, to: string, reason: InTheWay): void => {
    for (const key of keysBetween(grid, from > span.from ? from : span.from, to < span.to ? to : span.to)) {
      const reasons = found.get(key);
      if (reasons) reasons.push(reason);
      else found.set(key, [reason]);
    }
  };
  for (const name of after) {
    const one = above.get(name);
    if (one?.never) stop(span.from, span.to, one.never);
    if (!one?.grid) continue;
    for (const [key, reason] of one.unfit ?? []) {
      const { from, to } = overlapping(grid, one.grid, { from: key, to: key });
      stop(from, to, reason);
    }
  }
  return found;
}
