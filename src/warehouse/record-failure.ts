import type { FailureType } from '../contract.js';
import type { Database } from './database.js';
import { endFill, type RunPartition } from './end-fill.js';
import type { FillOutcome } from './fill-request.js';

/**
 * Records that a run has failed on a partition for good. Its fill is ended first; where that had committed after all, the
 * fill is returned and nothing recorded. The partition's state changes only where no fill committed under a higher fence,
 * and what it holds stays on record. Told twice is once.
 */
export async function recordFailure(
  database: Database,
  failure: RunPartition & { readonly attempt: number; readonly type: FailureType; readonly message: string },
): Promise<FillOutcome | undefined> {
  const committed = await endFill(database, failure);
  if (committed) return committed;
  await database.query(
    `WITH failed AS (
       INSERT INTO repave.failure (pipeline, key, run, attempt, fence, type, message)
       SELECT $1, $2, $3, $4::pg_catalog.int4, fence, $5, $6 FROM repave.claim WHERE pipeline = $1 AND key = $2 AND run = $3
       ON CONFLICT (pipeline, key, run) DO NOTHING
       RETURNING *
     )
     INSERT INTO repave.partition AS p (pipeline, key, outcome, failed_at, failure_type, failure_message, run, attempt, fence)
     SELECT pipeline, key, 'failed', failed_at, type, message, run, attempt, fence FROM failed
     ON CONFLICT (pipeline, key) DO UPDATE
        SET outcome = 'failed', failed_at = excluded.failed_at, failure_type = excluded.failure_type,
            failure_message = excluded.failure_message, run = excluded.run, attempt = excluded.attempt, fence = excluded.fence
      WHERE p.fence < excluded.fence`,
    [failure.pipeline, failure.key, failure.run, failure.attempt, failure.type, failure.message],
  );
  return undefined;
}
