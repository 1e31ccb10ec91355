import { countBetween, keysBetween } from '../calendar/range.js';
import { type BackfillInput, PARTITION_STATES, type PartitionState } from '../contract.js';
import type { PlannedPipeline } from './planned-pipeline.js';
import type { PartitionRow } from '../warehouse/partitions.js';
import { fillable } from './fillable.js';
import { askedSpans, limitsOf, type Span } from './selection.js';
import { stateOf } from './state.js';

/** A partition that a backfill would fill. */
export interface PlanEntry {
  readonly key: string;
  /** Its state when the plan was made. */
  readonly reason: PartitionState;
}

/** The exact list of partitions a backfill would fill, each with its reason. */
export interface Plan {
  readonly pipeline: string;
  /** In the order asked for. */
  readonly entries: readonly PlanEntry[];
  readonly counts: Readonly<Record<PartitionState, number>>;
  /** First and last key in the calendar's order; absent where nothing is to do. */
  readonly first?: string;
  readonly last?: string;
  /** Present where the entries are all partitions from one to another, so that no list is needed to name them. */
  readonly range?: Span;
  /** Said to people: what was named and is left out, with counts. */
  readonly notes: readonly string[];
}

export interface PlanningFacts {
  readonly now: Date;
  /** A schedule's time, for `last`. Default: now. A later time than now counts as now. */
  readonly asOf?: Date;
  /** The ledger's rows of the partitions between two keys, both included. */
  readonly rows: (from: string, to: string) => Promise<ReadonlyMap<string, PartitionRow>>;
}

/**
 * Works out which partitions a judged input means, as of now. Writes nothing. Throws `InvalidInput` for keys that are none of
 * the pipeline's, a range the wrong way round, and where nothing is left because of the pipeline's start or the future: that
 * message names the nearest partition that could be filled. Where `only` leaves nothing, the plan is empty.
 */
export async function resolvePlan(
  input: BackfillInput,
  pipeline: PlannedPipeline,
  facts: PlanningFacts,
): Promise<Plan> {
  const grid = pipeline.partition;
  const limits = limitsOf(input, pipeline, facts.now, facts.asOf);
  const { spans, notes } = fillable(askedSpans(input, pipeline, limits), pipeline, limits);
  const rows = await facts.rows(spans[0].from, spans.at(-1)?.to ?? spans[0].to);
  const entries: PlanEntry[] = [];
  const counts = Object.fromEntries(PARTITION_STATES.map((state) => [state, 0])) as Record<PartitionState, number>;
  for (const { from, to } of spans) {
    for (const key of keysBetween(grid, from, to)) {
      const reason = stateOf(rows.get(key), pipeline.fingerprint);
      if (input.only && (reason === 'filled' || !input.only.includes(reason))) continue;
      entries.push({ key, reason });
      counts[reason]++;
    }
  }
  const ends = { first: entries[0]?.key, last: entries.at(-1)?.key };
  const range = ends.first !== undefined && ends.last !== undefined ? { from: ends.first, to: ends.last } : undefined;
  const whole = range && countBetween(grid, range.from, range.to) === entries.length;
  if (input.order === 'newest-first') entries.reverse();
  return { pipeline: pipeline.name, entries, counts, ...ends, range: whole ? range : undefined, notes };
}
