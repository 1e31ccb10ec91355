import type { Database } from './database.js';

/** A partition whose last outcome was a final failure. */
export interface FailedPartition {
  readonly pipeline: string;
  readonly key: string;
  readonly type: string;
  readonly message: string;
  readonly at: Date | null;
}

/** The first failed partitions of a pipeline, in the calendar's order. */
export async function failedPartitions(
  database: Database,
  pipeline: string,
  limit: number,
): Promise<FailedPartition[]> {
  return database.query<FailedPartition>(
    `SELECT pipeline, key, coalesce(failure_type, 'Unexpected') AS type, coalesce(failure_message, '') AS message, failed_at AS at
       FROM repave.partition WHERE pipeline = $1 AND outcome = 'failed' ORDER BY key COLLATE "C" LIMIT $2`,
    [pipeline, limit],
  );
}
