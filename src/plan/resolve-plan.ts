import { countBetween, nextKey } from '../calendar/range.js';
import { type BackfillInput, PARTITION_STATES, type PartitionState } from '../contract.js';
import type { StateRow } from '../warehouse/partition-states.js';
import type { RestingPartition } from '../warehouse/resting.js';
import { fillable, type Fillable } from './fillable.js';
import { PlanDigest, planId, queryOf, type ReasonCounts } from './plan-id.js';
import { pagesOf } from './plan-pages.js';
import type { PlannedPipeline } from './planned-pipeline.js';
import { Resting } from './resting.js';
import { askedSpans, limitsOf, type Span } from './selection.js';
import { stateOf } from '../warehouse/partition-state.js';

/** A partition that a backfill would fill. */
export interface PlanEntry {
  readonly key: string;
  /** Its state when the plan was made. */
  readonly reason: PartitionState;
  /** What it holds now, by its last committed fill; absent where there was none. */
  readonly rows?: number;
  readonly filledAt?: Date;
}

/** What is said of the exact list of partitions that a backfill would fill, without the list. */
export interface Plan {
  readonly pipeline: string;
  /** As {@link planId} makes it. */
  readonly id: string;
  readonly total: number;
  readonly counts: ReasonCounts;
  /** First and last key in the calendar's order; absent where nothing is to do. */
  readonly first?: string;
  readonly last?: string;
  /** Present where the partitions are all from one to another, so that no list is needed to name them. */
  readonly range?: Span;
  /** All that was asked for and may be filled, whatever its state: from the first to the last. */
  readonly asked: Span;
  /** With `tries`: failed partitions that rest, and are left out. */
  readonly resting?: number;
  /** Said to people: what was named and is left out, with counts. */
  readonly notes: readonly string[];
}

export interface PlanningTimes {
  readonly now: Date;
  /** A schedule's time, for `last`. Default: now. A later time than now counts as now. */
  readonly asOf?: Date;
  /** The schedule's time before that: `last` also takes in what was finished since. */
  readonly before?: Date;
}

export interface PlanningFacts extends PlanningTimes {
  /** The ledger's rows of the partitions in some spans, by key. */
  readonly states: (spans: readonly Span[]) => Promise<ReadonlyMap<string, StateRow>>;
  /**
   * Of some partitions with rows in the ledger, those whose source has moved since they were filled, by its pipeline's `changed`.
   * Asked only where the input's `only` has `changed`, and of no partition that is in another state.
   */
  readonly changed?: (filled: readonly StateRow[]) => Promise<ReadonlySet<string>>;
  /** Of some failed partitions those that rest, since they have failed in the same way as often as the input's `tries` says. */
  readonly resting?: (failed: readonly string[], tries: number) => Promise<readonly RestingPartition[]>;
  /** Partitions held at once. Default 5,000. */
  readonly pageSize?: number;
}

const PAGE_SIZE = 5_000;

/**
 * Works out which partitions a judged input means, as of now, and hands them to `take` page by page in the order asked for;
 * the next page is not begun before `take` is done. Holds a page and never the list. Writes nothing. Throws `InvalidInput` for
 * keys that are none of the pipeline's, a range the wrong way round, and where nothing is left because of the pipeline's start
 * or the future: that message names the nearest partition that could be filled. Where `only` leaves nothing, the plan is empty.
 */
export async function resolvePlan(
  input: BackfillInput,
  pipeline: PlannedPipeline,
  facts: PlanningFacts,
  take: (page: readonly PlanEntry[]) => Promise<void> | void = () => undefined,
): Promise<Plan> {
  const grid = pipeline.partition;
  const order = input.order ?? 'oldest-first';
  const { spans, notes } = asked(input, pipeline, facts);
  const counts = Object.fromEntries(PARTITION_STATES.map((state) => [state, 0])) as Record<PartitionState, number>;
  const digest = new PlanDigest();
  const resting = new Resting(pipeline.name);
  let ends: { readonly begun: string; readonly ended: string } | undefined;
  for (const page of pagesOf(grid, spans, order, facts.pageSize ?? PAGE_SIZE)) {
    const rows = await facts.states(page.spans);
    const { moved, rest } = await asideOf(input, pipeline, facts, page.keys, rows);
    resting.add(rest);
    const entries: PlanEntry[] = [];
    for (const key of page.keys) {
      const row = rows.get(key);
      const reason = stateOf(row, pipeline.fingerprint, moved.has(key));
      if (input.only && (reason === 'filled' || !input.only.includes(reason))) continue;
      if (resting.has(key)) continue;
      entries.push({ key, reason, rows: row?.rows ?? undefined, filledAt: row?.filledAt ?? undefined });
      counts[reason]++;
      digest.add(key, reason);
      ends = { begun: ends?.begun ?? key, ended: key };
    }
    if (entries.length > 0) await take(entries);
  }

  const total = PARTITION_STATES.reduce((sum, state) => sum + counts[state], 0);
  const covered = ends && sorted(ends.begun, ends.ended);
  return {
    pipeline: pipeline.name,
    id: planId({ query: queryOf(pipeline.fingerprint), counts, digest: digest.toString() }),
    total,
    counts,
    first: covered?.from,
    last: covered?.to,
    range: covered && countBetween(grid, covered.from, covered.to) === total ? covered : undefined,
    asked: { from: spans[0].from, to: spans.at(-1)?.to ?? spans[0].to },
    ...(input.tries === undefined ? {} : { resting: resting.count }),
    notes: [...notes, ...resting.notes],
  };
}

/** What of a page the ledger's rows alone do not say. */
interface Aside {
  /** Partitions whose source has moved. */
  readonly moved: ReadonlySet<string>;
  /** Partitions that rest. */
  readonly rest: readonly RestingPartition[];
}

const NONE: ReadonlySet<string> = new Set();

async function asideOf(
  { only, tries }: BackfillInput,
  { fingerprint }: PlannedPipeline,
  facts: PlanningFacts,
  keys: readonly string[],
  rows: ReadonlyMap<string, StateRow>,
): Promise<Aside> {
  const inState = (state: PartitionState): StateRow[] =>
    keys.flatMap((key) => rows.get(key) ?? []).filter((row) => stateOf(row, fingerprint) === state);
  const asked = facts.changed && only?.includes('changed') ? inState('filled') : [];
  const failed = facts.resting && tries !== undefined ? inState('failed').map(({ key }) => key) : [];
  return {
    moved: (asked.length > 0 && (await facts.changed?.(asked))) || NONE,
    rest: (failed.length > 0 && tries !== undefined && (await facts.resting?.(failed, tries))) || [],
  };
}

/**
 * The one run of partitions that an input means whatever their states, which takes no look at the ledger however long it is;
 * undefined where they matter or the partitions do not follow each other. Throws as {@link resolvePlan}.
 */
export function plainRange(
  input: BackfillInput,
  pipeline: PlannedPipeline,
  times: PlanningTimes,
): (Pick<Plan, 'total' | 'first' | 'last' | 'notes'> & { readonly range: Span }) | undefined {
  const grid = pipeline.partition;
  const { spans, notes } = asked(input, pipeline, times);
  if (input.only !== undefined || input.plan !== undefined) return undefined;
  const from = spans[0].from;
  let to = spans[0].to;
  for (const span of spans.slice(1)) {
    if (nextKey(grid, to) !== span.from) return undefined;
    to = span.to;
  }
  return { total: countBetween(grid, from, to), first: from, last: to, range: { from, to }, notes };
}

function asked(input: BackfillInput, pipeline: PlannedPipeline, { now, asOf, before }: PlanningTimes): Fillable {
  const limits = limitsOf(input, pipeline, now, asOf, before);
  return fillable(askedSpans(input, pipeline, limits), pipeline, limits);
}

function sorted(one: string, other: string): Span {
  return one < other ? { from: one, to: other } : { from: other, to: one };
}
