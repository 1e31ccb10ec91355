import { countBetween, newestFinished } from '../calendar/range.js';
import type { Database } from '../warehouse/database.js';
import type { RegisteredPipeline } from '../warehouse/ledger.js';
import { partitionRows, pipelineCounts } from '../warehouse/partitions.js';
import { isGranularity } from './plan-request.js';

/** A pipeline as workers have registered it, with its partitions counted by state. */
export interface PipelineView {
  readonly name: string;
  readonly target: string;
  readonly by: string;
  readonly zone: string;
  readonly start: string | null;
  readonly filled: number;
  readonly failed: number;
  readonly outdated: number;
  /** From `start` to the newest finished partition; absent where the pipeline has no start. */
  readonly missing?: number;
  /** Greatest key that was ever filled. */
  readonly newest: string | null;
  readonly registeredAt: Date;
}

export interface FailedPartition {
  readonly pipeline: string;
  readonly key: string;
  readonly type: string;
  readonly message: string;
  readonly at: Date | null;
}

/** Counts a pipeline's partitions: the ledger's by one query, the missing ones by the calendar. */
export async function viewPipeline(database: Database, pipeline: RegisteredPipeline): Promise<PipelineView> {
  const { name, target, by, zone, start, registeredAt } = pipeline;
  const { filled, failed, outdated, newest } = await pipelineCounts(database, name, pipeline.fingerprint);
  const view = { name, target, by, zone, start, filled, failed, outdated, newest, registeredAt };
  if (start === null || !isGranularity(by)) return view;
  const grid = { by, zone };
  const all = countBetween(grid, start, newestFinished(grid, new Date().toISOString()));
  return { ...view, missing: Math.max(0, all - filled - failed - outdated) };
}

/** The first failed partitions of a pipeline, in the calendar's order. */
export async function failedPartitions(
  database: Database,
  pipeline: string,
  limit: number,
): Promise<FailedPartition[]> {
  const failed = [...(await partitionRows(database, pipeline)).values()].filter(({ outcome }) => outcome === 'failed');
  return failed.slice(0, limit).map(({ key, failureType, failureMessage, failedAt }) => {
    return { pipeline, key, type: failureType ?? 'Unexpected', message: failureMessage ?? '', at: failedAt };
  });
}
