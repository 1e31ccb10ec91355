import { Failure } from '../failure.js';
import { abortable } from './abortable.js';
import { parseAttemptName } from './attempt-name.js';
import type { Database } from './database.js';
import type { FillRequest } from './fill-request.js';
import { isHeld, keepsFillsOut, type WindowLock } from './lock.js';
import { isoInstant, SEEN_SESSION, type SeenSession, sessionInWords } from './seen-session.js';
import type { Target } from './target.js';

/** Who is in the way of a fill that could not lock its window. */
export interface Holder {
  /** On one line, such as `run 1b4e28ba-… of sales 2024-03-05 (pid 71, since 2024-03-06T09:00:00Z)`. */
  readonly words: string;
  /** The workflow run, where it is a fill's. */
  readonly run?: string;
  /** It changes the table's grid, or waits to: no window of the table is to be had for as long. */
  readonly grid: boolean;
}

/**
 * The failure of a fill that could not lock its window, naming who holds it: `Busy`, which is final, where the request does not
 * wait and another run or session is at the window; else `Conflict`, to be tried again.
 */
export async function windowHeld(
  database: Database,
  target: Pick<Target, 'root'>,
  lock: WindowLock,
  { pipeline, window, owner, onBusy = 'wait', signal }: FillRequest,
): Promise<Failure> {
  const holder = await abortable(holderOf(database, target, lock), signal);
  const what = `The window of ${pipeline.name} ${window.key}`;
  if (!holder) {
    return new Failure('Conflict', `${what} was held until just now. It is tried again.`, { retryAfterMs: 1_000 });
  }
  // A change of the grid is soon over; and an older attempt of its own that cannot be ended is no other run.
  if (onBusy !== 'wait' && !holder.grid && holder.run !== owner.run) {
    return new Failure(
      'Busy',
      `${what} is held by ${holder.words}. Start it again once that has ended, or set onBusy to wait.`,
    );
  }
  return new Failure('Conflict', `${what} is held by ${holder.words}. It is tried again.`, {
    // Apart from each other, so that those who wait do not come all at once.
    retryAfterMs: 5_000 + Math.floor(Math.random() * 10_000),
  });
}

/** Who keeps fills out of a window, as far as this role may see; undefined where nobody does any more. */
export async function holderOf(
  database: Database,
  target: Pick<Target, 'root'>,
  lock: WindowLock,
): Promise<Holder | undefined> {
  const [seen] = await database.query<SeenSession & { grid: boolean }>(
    `SELECT ${SEEN_SESSION}, l.objsubid = 1 AS grid
       FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
      WHERE ${isHeld('$1', '$2')} OR ${keepsFillsOut('$3')}
      ORDER BY l.objsubid DESC, l.granted DESC, a.xact_start LIMIT 1`,
    [lock.space, lock.window, target.root],
  );
  if (!seen) return undefined;
  const attempt = parseAttemptName(seen.application ?? '');
  if (!attempt || seen.grid) return { words: sessionInWords(seen), grid: seen.grid };
  const { pid, role, since } = seen;
  if (attempt.activity === 'try')
    return { words: `a \`repave try\` (${sessionInWords({ pid, role, application: null, since })})`, grid: false };
  const { run, fence } = attempt;
  const claim = await claimOf(database, run, fence);
  const where = sessionInWords({ pid, role: null, application: null, since: since ?? claim?.since ?? null });
  return { words: `run ${run}${claim ? ` of ${claim.pipeline} ${claim.key}` : ''} (${where})`, run, grid: false };
}

interface ClaimedPartition {
  readonly pipeline: string;
  readonly key: string;
  readonly since: string;
}

/** What an attempt of a run fills; undefined where the ledger does not say. */
async function claimOf(database: Database, run: string, fence: string): Promise<ClaimedPartition | undefined> {
  try {
    const [claim] = await database.query<ClaimedPartition>(
      `SELECT pipeline, key, ${isoInstant('claimed_at')} AS since FROM repave.claim WHERE run = $1 AND fence = $2::pg_catalog.int8`,
      [run, fence],
    );
    return claim;
  } catch {
    // Whoever only tries may have no ledger, or no right to read it.
    return undefined;
  }
}
