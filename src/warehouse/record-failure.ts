import type { FailureType } from '../contract.js';
import type { Database } from './database.js';
import { endFill, type RunPartition } from './end-fill.js';
import type { Failure } from '../failure.js';
import type { FillOutcome, FillRequest } from './fill-request.js';

/** Records a failure for each claim of `lost`, by the type $5 and the message $6 of the attempt $4, in the backfill $7, started by $8. */
const RECORD = `
     failed AS (
       INSERT INTO repave.failure (pipeline, key, run, attempt, fence, type, message, backfill, started_by)
       SELECT pipeline, key, run, $4::pg_catalog.int4, fence, $5, $6, $7, $8 FROM lost
       ON CONFLICT (pipeline, key, run) DO NOTHING
       RETURNING *
     ),
     recorded AS (
       INSERT INTO repave.partition AS p (pipeline, key, outcome, failed_at, failure_type, failure_message, run, attempt, fence)
       SELECT pipeline, key, 'failed', failed_at, type, message, run, attempt, fence FROM failed
       ON CONFLICT (pipeline, key) DO UPDATE
          SET outcome = 'failed', failed_at = excluded.failed_at, failure_type = excluded.failure_type,
              failure_message = excluded.failure_message, run = excluded.run, attempt = excluded.attempt, fence = excluded.fence
        WHERE p.fence < excluded.fence
     )
     SELECT pipeline FROM failed`;

/**
 * Records that a run has failed on a partition for good. Its fill is ended first; where that had committed after all, the
 * fill is returned and nothing recorded. The partition's state changes only where no fill committed under a higher fence,
 * and what it holds stays on record. Told twice is once.
 */
export async function recordFailure(
  database: Database,
  failure: RunPartition &
    Pick<FillRequest, 'backfill' | 'startedBy'> & {
      readonly attempt: number;
      readonly type: FailureType;
      readonly message: string;
    },
): Promise<FillOutcome | undefined> {
  const committed = await endFill(database, failure);
  if (committed) return committed;
  await database.query(
    `WITH lost AS (SELECT pipeline, key, run, fence FROM repave.claim WHERE pipeline = $1 AND key = $2 AND run = $3), ${RECORD}`,
    [
      failure.pipeline,
      failure.key,
      failure.run,
      failure.attempt,
      failure.type,
      failure.message,
      failure.backfill ?? null,
      failure.startedBy ?? null,
    ],
  );
  return undefined;
}

/**
 * Records a final failure of an attempt whose fill has ended, from that attempt itself, and lets no attempt of the run claim
 * the partition any more: both in one statement, or, where the attempt is not its run's newest, neither. Returns whether.
 */
export async function recordOwnFailure(
  database: Database,
  { pipeline, window, owner, attempt, backfill, startedBy }: FillRequest,
  failure: Failure,
): Promise<boolean> {
  const recorded = await database.query(
    `WITH lost AS (
       UPDATE repave.claim AS c SET closed = true
        WHERE c.pipeline = $1 AND c.key = $2 AND c.run = $3 AND c.attempt = $4 AND c.scheduled_at = $9 AND NOT c.closed
          AND NOT EXISTS (SELECT FROM repave.fill f WHERE f.pipeline = $1 AND f.key = $2 AND f.run = $3)
       RETURNING c.pipeline, c.key, c.run, c.fence), ${RECORD}`,
    [
      pipeline.name,
      window.key,
      owner.run,
      attempt.number,
      failure.type,
      failure.message,
      backfill ?? null,
      startedBy ?? null,
      attempt.scheduledAt,
    ],
  );
  return recorded.length > 0;
}
