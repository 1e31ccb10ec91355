import { Failure } from '../failure.js';
import { abortable } from './abortable.js';
import { ownerPrefix } from './attempt-name.js';
import type { Database } from './database.js';
import { endBackendsOfRun } from './end-backends.js';
import { sqlstate, toFailure } from './errors.js';
import type { FillRequest } from './fill-request.js';
import type { Session } from './session.js';
import { alone } from './transaction.js';

export interface Claim {
  /** Grows with each claim: an attempt with a lower one can no longer commit. */
  readonly fence: number;
  /** Failures of this run so far that count against the pipeline's tries. */
  readonly faults: number;
}

/** Milliseconds a claim waits for an older attempt that holds the row between its guard and its COMMIT. */
const CLAIM_WAIT_MS = 300;
const CLAIM_TRIES = 10;

/**
 * Makes this attempt its run's newest on the partition: from now on no older one can commit. Refused to an attempt that is
 * itself older, by (scheduled time, attempt number), and once the run's claim is closed.
 *
 * One statement in autocommit; its settings end with it. Throws `StaleAttempt`, or `Conflict` where an older attempt holds
 * the row and cannot be ended.
 */
export async function claim(session: Session, database: Database, request: FillRequest): Promise<Claim> {
  const { pipeline, window, owner, attempt } = request;
  for (let tries = 1; ; tries++) {
    try {
      const [row] = await alone(session, database, () =>
        session.rows<{ fence: number; faults: number }>(
          `WITH pinned AS MATERIALIZED (
           SELECT pg_catalog.set_config('lock_timeout', $7, true), pg_catalog.set_config('application_name', $8, true),
                  CASE WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local')
                       THEN pg_catalog.set_config('synchronous_commit', 'on', true) END)
         INSERT INTO repave.claim AS c (pipeline, key, run, scheduled_at, attempt, deadline)
         SELECT $1, $2, $3, $4, $5, pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $6) FROM pinned
         ON CONFLICT (pipeline, key, run) DO UPDATE
            SET fence = DEFAULT, scheduled_at = excluded.scheduled_at, attempt = excluded.attempt,
                deadline = excluded.deadline, claimed_at = excluded.claimed_at
          WHERE NOT c.closed AND (c.scheduled_at, c.attempt) <= (excluded.scheduled_at, excluded.attempt)
         RETURNING c.fence::pg_catalog.float8 AS fence, c.faults`,
          [
            pipeline.name,
            window.key,
            owner.run,
            attempt.scheduledAt,
            attempt.number,
            Math.max(0, request.timeLeftMs) / 1000,
            String(CLAIM_WAIT_MS),
            `${ownerPrefix(owner)}claims`,
          ],
        ),
      );
      if (row) return row;
      throw new Failure(
        'StaleAttempt',
        `Attempt ${attempt.number} of ${pipeline.name} ${window.key} came after a newer one, or after its run had ended. Nothing was written; the newer one decides.`,
      );
    } catch (error) {
      if (sqlstate(error) !== '55P03') throw toFailure(error);
      await session.rollback();
      if (tries === CLAIM_TRIES) {
        throw new Failure(
          'Conflict',
          `An older attempt of ${pipeline.name} ${window.key} stands just before its COMMIT and cannot be ended by this role. It is tried again.`,
          { retryAfterMs: 5_000 },
        );
      }
      await abortable(endOlderAttempts(database, request), request.signal);
    }
  }
}

/** Ends the backends of the claims that mine is about to replace. */
async function endOlderAttempts(database: Database, { pipeline, window, owner, attempt }: FillRequest): Promise<void> {
  const [older] = await database.query<{ fence: number }>(
    `SELECT fence::pg_catalog.float8 AS fence FROM repave.claim
      WHERE pipeline = $1 AND key = $2 AND run = $3 AND (scheduled_at, attempt) <= ($4, $5)`,
    [pipeline.name, window.key, owner.run, attempt.scheduledAt, attempt.number],
  );
  if (older) await endBackendsOfRun(database, owner.run, older.fence);
}

/** Takes back a claim that is not needed, since an earlier attempt of the run had committed. */
export async function withdrawClaim(session: Session, request: FillRequest, fence: number): Promise<void> {
  await session.query('DELETE FROM repave.claim WHERE pipeline = $1 AND key = $2 AND run = $3 AND fence = $4', [
    request.pipeline.name,
    request.window.key,
    request.owner.run,
    fence,
  ]);
}

/**
 * Gives up an attempt's claims, so that a run that ends without a fill or a failure leaves none behind. Where an earlier
 * attempt may still be about, which a number of 1 does not rule out, they stand with their time over instead: it must not claim anew. Closed they are not, since a
 * later attempt begins where this one's answer is lost.
 */
export async function releaseClaims(
  database: Database,
  keys: readonly string[],
  { pipeline, owner, attempt, isFirst }: Pick<FillRequest, 'pipeline' | 'owner' | 'attempt'> & { isFirst: boolean },
): Promise<void> {
  const mine = 'pipeline = $1 AND key = ANY ($2) AND run = $3 AND scheduled_at = $4 AND attempt = $5';
  await database.query(
    isFirst
      ? `DELETE FROM repave.claim WHERE ${mine}`
      : `UPDATE repave.claim SET deadline = pg_catalog.clock_timestamp() WHERE ${mine}`,
    [pipeline.name, keys, owner.run, attempt.scheduledAt, attempt.number],
  );
}

/** Counts a failure of this attempt against the pipeline's tries. Returns the new count, or undefined for an attempt that is not the newest. */
export async function countFault(database: Database, request: FillRequest, fence: number): Promise<number | undefined> {
  const [row] = await database.query<{ faults: number }>(
    `UPDATE repave.claim SET faults = faults + 1 WHERE pipeline = $1 AND key = $2 AND run = $3 AND fence = $4 RETURNING faults`,
    [request.pipeline.name, request.window.key, request.owner.run, fence],
  );
  return row?.faults;
}
