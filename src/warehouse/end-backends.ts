import { setTimeout as delay } from 'node:timers/promises';
import { abortable } from './abortable.js';
import { ATTEMPT_PATTERN } from './attempt-name.js';
import type { Database } from './database.js';
import type { FillRequest } from './fill-request.js';
import { isHeld, type WindowLock } from './lock.js';
import type { Backend } from './session.js';

/** Milliseconds that an ended backend may take to go; one that computes looks at its interrupts now and then. */
export const GONE_WAIT_MS = 20_000;
/** Milliseconds between two looks whether it has gone. */
export const LOOK_EVERY_MS = 50;

/**
 * Ends one backend in its transaction of that name, and returns once it has gone or the transaction has ended by itself.
 * Rejects where the database does not answer in time, or the backend does not go.
 */
export async function endBackend(database: Database, { pid, startedAt, applicationName }: Backend): Promise<void> {
  const until = Date.now() + GONE_WAIT_MS;
  for (;;) {
    const ended = database.query(
      `SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
        WHERE pid = $1 AND backend_start = $2::pg_catalog.timestamptz AND application_name = $3`,
      [pid, startedAt, applicationName],
    );
    const left = await abortable(ended, AbortSignal.timeout(database.answerMs));
    if (left.length === 0) return;
    if (Date.now() > until) throw new Error(`The backend ${pid} does not end`);
    await delay(LOOK_EVERY_MS);
  }
}

/**
 * Ends the backends of a run on any worker whose fence is at most `upTo`, as far as they log in as this role: the server
 * refuses the rest. Read and ended in one statement, in autocommit, since pg_stat_activity stands still in a transaction.
 * Returns how many are left, ended ones that have not gone yet included.
 */
export async function endBackendsOfRun(database: Database, run: string, upTo: number): Promise<number> {
  const [row] = await database.query<{ found: number }>(
    `SELECT pg_catalog.count(*)::pg_catalog.int4 AS found
       FROM (SELECT CASE WHEN a.usename = current_user THEN pg_catalog.pg_terminate_backend(a.pid) END AS ended
               FROM pg_catalog.pg_stat_activity a,
                    LATERAL pg_catalog.regexp_match(a.application_name, $1) AS m
              WHERE a.datname = pg_catalog.current_database() AND m[1] = $2 AND m[2]::pg_catalog.int8 <= $3::pg_catalog.int8) t`,
    [ATTEMPT_PATTERN, run, upTo],
  );
  return row?.found ?? 0;
}

/**
 * Ends whoever holds a window's lock and can no longer commit: an older attempt of my run, and of any run an attempt whose
 * deadline has passed, or that a newer claim of its run has replaced (a frozen worker of a closed run would block its window
 * for good). Never another run's live attempt: between runs only the lock orders, else two healthy runs would end each other.
 */
export async function endOverdueHolders(
  database: Database,
  lock: WindowLock,
  { pipeline, window, owner }: Pick<FillRequest, 'pipeline' | 'window' | 'owner'>,
  fence: number,
): Promise<number> {
  const [row] = await database.query<{ ended: number }>(
    `SELECT pg_catalog.count(*)::pg_catalog.int4 AS ended
       FROM (SELECT pg_catalog.pg_terminate_backend(a.pid)
               FROM pg_catalog.pg_locks l
               JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid,
                    LATERAL pg_catalog.regexp_match(a.application_name, $1) AS m
              WHERE ${isHeld('$2', '$3')}
                AND a.usename = current_user
                AND ((m[1] = $4 AND m[2]::pg_catalog.int8 < $5::pg_catalog.int8)
                     OR EXISTS (SELECT FROM repave.claim c
                                 WHERE c.run = m[1]
                                   AND (c.fence = m[2]::pg_catalog.int8 AND c.deadline < pg_catalog.clock_timestamp()
                                        OR c.fence > m[2]::pg_catalog.int8 AND c.pipeline = $6 AND c.key = $7)))) t`,
    [ATTEMPT_PATTERN, lock.space, lock.window, owner.run, fence, pipeline.name, window.key],
  );
  return row?.ended ?? 0;
}
