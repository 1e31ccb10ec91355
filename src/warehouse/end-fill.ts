import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../failure.js';
import { NAMES_NOW } from './carry-over.js';
import type { Database } from './database.js';
import { endBackendsOfRun, GONE_WAIT_MS, LOOK_EVERY_MS } from './end-backends.js';
import type { FillOutcome } from './fill-request.js';
import { committed } from './ledger-entry.js';

/** One run's work on one partition. */
export interface RunPartition {
  readonly pipeline: string;
  readonly key: string;
  readonly run: string;
}

const CLOSE_WAIT_MS = 300;
const CLOSE_TRIES = 20;

/**
 * Ends a run's work on a partition from wherever this is called: no attempt of it can claim or commit from now on, none of
 * its backends is left when this returns, and its transaction was rolled back, unless it had committed: then that fill is
 * returned. So a cancel holds also where the worker that ran it is dead or frozen.
 *
 * Throws `Conflict` where a backend stays, since another role runs it.
 */
export async function endFill(database: Database, work: RunPartition): Promise<FillOutcome | undefined> {
  await closeClaim(database, work);
  await endRun(database, work.pipeline, work.run);
  // Ending a backend is not rolling back: one that waited for a standby in its COMMIT has committed. Only this look tells.
  return committedFill(database, work);
}

/**
 * Ends what a run has going on in one database, a pipeline's source included, whichever worker began it: none of its backends
 * is left when this returns. Throws `Conflict` where one stays, since another role runs it.
 */
export async function endRun(database: Database, pipeline: string, run: string): Promise<void> {
  const until = Date.now() + GONE_WAIT_MS;
  while ((await endBackendsOfRun(database, run, Number.MAX_SAFE_INTEGER)) > 0) {
    if (Date.now() > until) {
      throw new Failure(
        'Conflict',
        `A backend of a fill of ${pipeline} in ${database.place} does not end: see pg_stat_activity for application_name LIKE 'repave ${run}%'. If it logs in as another role, end it by hand.`,
        { retryAfterMs: 5_000 },
      );
    }
    await delay(LOOK_EVERY_MS);
  }
}

/** Closes the run's claim. One that stands between its guard and its COMMIT holds the row: it is ended, or has committed. */
async function closeClaim(database: Database, { pipeline, key, run }: RunPartition): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await database.query(
        `WITH pinned AS MATERIALIZED (SELECT pg_catalog.set_config('lock_timeout', $4, true))
         INSERT INTO repave.claim AS c (pipeline, key, run, scheduled_at, attempt, deadline, closed)
         SELECT $1, $2, $3, 0, 0, pg_catalog.clock_timestamp(), true FROM pinned
         ON CONFLICT (pipeline, key, run) DO UPDATE SET closed = true`,
        [pipeline, key, run, String(CLOSE_WAIT_MS)],
      );
      return;
    } catch (error) {
      if (!(error instanceof Failure) || error.options.sqlstate !== '55P03' || tries === CLOSE_TRIES) throw error;
      await endBackendsOfRun(database, run, Number.MAX_SAFE_INTEGER);
    }
  }
}

async function committedFill(
  database: Database,
  { pipeline, key, run }: RunPartition,
): Promise<FillOutcome | undefined> {
  const [row] = await database.query<Omit<FillOutcome, 'found'>>(
    `SELECT fence::pg_catalog.float8 AS fence, rows_inserted::pg_catalog.float8 AS rows,
            rows_deleted::pg_catalog.float8 AS deleted, seconds, warnings, unchanged
       FROM repave.fill WHERE pipeline = ANY (${NAMES_NOW}) AND key = $2 AND run = $3`,
    [pipeline, key, run],
  );
  return row && committed(row);
}
