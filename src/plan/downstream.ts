import { countBetween, keysBetween, newestFinished } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import { downstreamOf } from '../pipeline/after.js';
import type { Database } from '../warehouse/database.js';
import { type InTheWay, inTheWayOf, inTheWayText } from '../warehouse/in-the-way.js';
import type { RegisteredPipeline } from '../warehouse/ledger.js';
import { gridOf, overlapWith } from '../warehouse/upstream.js';
import { pagesOf } from './plan-pages.js';
import type { Span } from './selection.js';

/** What is to be filled of a pipeline that depends on another, once that is. */
export interface DownstreamPlan {
  readonly pipeline: string;
  /** Those it comes after. */
  readonly after: readonly string[];
  readonly total: number;
  /** Partitions without holes, in the calendar's order; empty where nothing of it can be filled. */
  readonly ranges: readonly Span[];
  /** Said to people: what of it is left out, and why. */
  readonly notes: readonly string[];
  /** Why nothing of it can be filled: no worker has registered it. */
  readonly unserved?: string;
}

/** Partitions looked at together. */
const PAGE_SIZE = 5_000;
/** Ranges of one pipeline: what its backfill is asked must fit into an input, and all of them into one answer. */
export const MAX_RANGES = 5_000;

/**
 * What depends on some partitions of a pipeline: of each pipeline that comes after it, directly or through others, the finished
 * partitions that overlap them, each pipeline behind all that it comes after. A partition is left out, and said, where it could
 * not be filled, since another that it comes after is not; `assumed`: as if the partitions were filled. Writes nothing.
 */
export async function planDownstream(
  database: Database,
  registered: readonly RegisteredPipeline[],
  root: string,
  covered: Span,
  { now, assumed }: { readonly now: Date; readonly assumed: boolean },
): Promise<readonly DownstreamPlan[]> {
  const byName = new Map(registered.map((pipeline) => [pipeline.name, pipeline]));
  const reached = new Map<string, Reached>([[root, { span: covered, leftOut: new Map() }]]);
  const given = (pipeline: string, key: string): 'filled' | InTheWay | undefined => {
    if (pipeline === root && !assumed) return undefined;
    const { span, leftOut } = reached.get(pipeline) ?? {};
    if (!span || key < span.from || key > span.to) return undefined;
    return leftOut?.get(key) ?? 'filled';
  };
  const plans: DownstreamPlan[] = [];
  for (const name of downstreamOf(root, byName)) {
    const pipeline = byName.get(name);
    if (!pipeline) continue;
    const grid = gridOf(pipeline);
    const { after } = pipeline;
    const { span, notes } = finished(pipeline, reached, byName, now);
    const leftOut = new Map<string, InTheWay>();
    for (const { keys } of pagesOf(grid, span ? [span] : [], 'oldest-first', PAGE_SIZE)) {
      const [from = '', to = ''] = [keys[0], keys.at(-1)];
      const reasons = await inTheWayOf({ database, registered, given }, { grid, after }, { from, to });
      for (const key of keys) {
        const [reason] = reasons.get(key) ?? [];
        if (reason) leftOut.set(key, reason);
      }
    }
    const all = span ? withoutHoles(grid, span, leftOut) : [];
    const ranges = all.slice(0, MAX_RANGES);
    const [next, last] = [all[MAX_RANGES], ranges.at(-1)];
    // Behind the last one nothing is to be taken for filled.
    if (span) reached.set(name, { span: next && last ? { from: span.from, to: last.to } : span, leftOut });
    const total = ranges.reduce((sum, { from, to }) => sum + countBetween(grid, from, to), 0);
    const cut = next
      ? [
          `${name} is left out from ${next.from} on, since it has too many holes to be filled at once: then run it again.`,
        ]
      : [];
    plans.push({ pipeline: name, after, total, ranges, notes: [...notes, ...leftOutNote(name, leftOut), ...cut] });
  }
  return plans;
}

/** How far what was asked for reaches into a pipeline. */
interface Reached {
  readonly span: Span;
  /** Partitions of it that cannot be filled. */
  readonly leftOut: ReadonlyMap<string, InTheWay>;
}

/** A pipeline's finished partitions that overlap what is reached of those it comes after; none where there are none. */
function finished(
  pipeline: RegisteredPipeline,
  reached: ReadonlyMap<string, Reached>,
  byName: ReadonlyMap<string, RegisteredPipeline>,
  now: Date,
): { readonly span?: Span; readonly notes: readonly string[] } {
  const { name, start } = pipeline;
  const grid = gridOf(pipeline);
  const spans = pipeline.after.flatMap((upstream) => {
    const [above, span] = [byName.get(upstream), reached.get(upstream)?.span];
    return above && span ? [overlapWith({ grid, start }, gridOf(above), span)] : [];
  });
  const [first, ...others] = spans.filter(({ from, to }) => from <= to);
  if (!first) return { notes: [] };
  // They all reach around the same partitions, so that together they have no holes.
  const { from, to } = others.reduce((one, other) => {
    return { from: one.from < other.from ? one.from : other.from, to: one.to > other.to ? one.to : other.to };
  }, first);
  const newest = newestFinished(grid, now.toISOString());
  if (to <= newest) return { span: { from, to }, notes: [] };
  const { end } = windowOf(grid, to);
  const notes = [
    `${name} is left out from ${from > newest ? from : firstBehind(grid, newest, to)} on, which is unfinished until ${end}.`,
  ];
  return from > newest ? { notes } : { span: { from, to: newest }, notes };
}

function firstBehind(grid: ReturnType<typeof gridOf>, key: string, to: string): string {
  const [, next = to] = keysBetween(grid, key, to);
  return next;
}

function withoutHoles(
  grid: ReturnType<typeof gridOf>,
  { from, to }: Span,
  holes: ReadonlyMap<string, unknown>,
): Span[] {
  if (holes.size === 0) return [{ from, to }];
  const ranges: Span[] = [];
  let open: Span | undefined;
  for (const key of keysBetween(grid, from, to)) {
    if (holes.has(key)) {
      if (open) ranges.push(open);
      open = undefined;
    } else open = { from: open?.from ?? key, to: key };
  }
  return open ? [...ranges, open] : ranges;
}

function leftOutNote(name: string, leftOut: ReadonlyMap<string, InTheWay>): string[] {
  const keys = [...leftOut.keys()];
  const [first, last] = [keys[0], keys.at(-1)];
  if (first === undefined) return [];
  const what =
    keys.length === 1
      ? `${name} ${first} is left out: it comes`
      : `${keys.length} partitions of ${name} are left out, from ${first} to ${last}: they come`;
  return [`${what} after ${inTheWayText([...leftOut.values()])}.`];
}
