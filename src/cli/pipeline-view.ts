import { countBetween, newestFinished } from '../calendar/range.js';
import { isGranularity } from '../calendar/calendar.js';
import type { Database } from '../warehouse/database.js';
import type { RegisteredPipeline } from '../warehouse/ledger.js';
import { knownBetween, pipelineCounts } from '../warehouse/partitions.js';
import { comesAfter } from '../warehouse/upstream.js';

/** A pipeline as workers have registered it, with its partitions counted by state. */
export interface PipelineView {
  readonly name: string;
  readonly target: string;
  readonly by: string;
  readonly zone: string;
  readonly start: string | null;
  /** Pipelines whose partitions are filled before those that overlap them here. */
  readonly after: readonly string[];
  readonly filled: number;
  readonly failed: number;
  readonly outdated: number;
  /** From `start` to the newest finished partition, as a plan counts them; absent where the pipeline has no start. */
  readonly missing?: number;
  /** Greatest key that was ever filled. */
  readonly newest: string | null;
  readonly registeredAt: Date;
}

/** Counts a pipeline's partitions: the ledger's by their state, the missing ones by the calendar less what the ledger knows. */
export async function viewPipeline(database: Database, pipeline: RegisteredPipeline): Promise<PipelineView> {
  const { name, target, by, zone, start, after, fingerprint, registeredAt } = pipeline;
  const grid = isGranularity(by) ? { by, zone } : undefined;
  const upstreams = grid && (await comesAfter(database, { partition: grid, after }));
  const { filled, failed, outdated, newest } = await pipelineCounts(database, name, fingerprint, upstreams);
  const view = { name, target, by, zone, start, after, filled, failed, outdated, newest, registeredAt };
  if (start === null || !grid) return view;
  const last = newestFinished(grid, new Date().toISOString());
  // The ledger may also have the unfinished one, and some from before the start was moved: a plan counts neither.
  const known = await knownBetween(database, name, start, last);
  return { ...view, missing: Math.max(0, countBetween(grid, start, last) - known) };
}
