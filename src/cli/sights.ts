import { setTimeout as sleep } from 'node:timers/promises';
import type { Attempt, BackfillHandle, Pollers } from '../client.js';
import { MAX_CONCURRENCY, type Progress } from '../contract.js';
import type { AskLedger } from './ledger-progress.js';
import type { Sight } from './sight.js';

/** Milliseconds between two looks. */
const EVERY_MS = 1_000;
/** Milliseconds after which a worker that has not answered is not waited for: the ledger is asked. */
const PATIENCE_MS = 2_000;
/** Milliseconds between two questions to Temporal of what children are at. */
const ATTEMPTS_EVERY_MS = 3_000;

export interface Watched {
  readonly handle: BackfillHandle;
  /** Settles once the backfill has ended. */
  readonly ended: Promise<unknown>;
  readonly ledger: AskLedger;
  readonly pollers: () => Promise<Pollers>;
  /** Children that are shown: only they are asked about. */
  readonly shown: () => number;
  /** Aborted where nobody looks any more. */
  readonly signal: AbortSignal;
}

/**
 * A backfill as it is seen, about once a second, until it has ended; the last is how it ended, where a worker says so. Where no
 * worker answers, the figures are the ledger's, and what runs is what Temporal says of it.
 */
export async function* sights(watched: Watched): AsyncGenerator<Sight, void, undefined> {
  const { handle, ended, signal } = watched;
  let over = false;
  const end = ended.then(
    () => (over = true),
    () => (over = true),
  );
  const attempts = new AttemptsSeen(watched);
  let answering: Promise<Progress | undefined> | undefined;
  let last: Progress | undefined;
  while (!signal.aborted) {
    const final = over;
    // One question at a time: a worker that is slow to answer is not asked twice.
    answering ??= handle.progress({ signal }).catch(noAnswer);
    const answer = await within(answering, PATIENCE_MS);
    if (answer !== 'late') answering = undefined;
    if (answer !== 'late' && answer !== undefined) {
      last = answer;
      yield { id: handle.id, progress: answer, attempts: final ? [] : await attempts.of(answer) };
    } else if (!final) {
      yield await unansweredSight(watched, attempts, last);
    }
    if (final) return;
    await within(end, EVERY_MS);
  }
}

/** What the ledger and Temporal say together. Before the ledger knows it, it is yet to be planned. */
async function unansweredSight(
  { handle, ledger, pollers }: Watched,
  attempts: AttemptsSeen,
  last: Progress | undefined,
): Promise<Sight> {
  const [recorded, polled] = await Promise.all([ledger(), pollers().catch(() => undefined)]);
  const yetUnplanned: Progress = {
    ...{ pipeline: handle.id, total: 0, filled: 0, failed: 0, skipped: 0, rows: 0 },
    ...{ running: [], failures: [], phase: 'planning' },
  };
  // The ledger does not know the first and the last of a selection.
  const known = recorded ? { first: last?.first, last: last?.last, ...recorded } : (last ?? yetUnplanned);
  const children = await attempts.of(known);
  return {
    id: handle.id,
    progress: { ...known, running: runningBy(children, last), perMinute: undefined, secondsLeft: undefined },
    attempts: children,
    unanswered: polled?.workflows === 0 ? 'no worker polls' : 'no worker answers',
  };
}

/** Children as Temporal has them; since when, as a worker last said where it did. */
export function runningBy(attempts: readonly Attempt[], last?: Progress): Progress['running'] {
  const since = new Map(last?.running.map((child) => [child.keys, child.since]));
  const own = new Map(attempts.flatMap(({ keys, since }) => (keys === undefined ? [] : [[keys, since] as const])));
  return [...own].map(([keys, begun]) => ({ keys, since: since.get(keys) ?? begun }));
}

/** What children are at, asked at most every few seconds. */
class AttemptsSeen {
  readonly #watched: Watched;
  #seen: readonly Attempt[] = [];
  #at = -Infinity;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  async of({ running }: Progress): Promise<readonly Attempt[]> {
    const shown = Math.min(this.#watched.shown(), MAX_CONCURRENCY);
    if (shown === 0 || Date.now() - this.#at < ATTEMPTS_EVERY_MS) return this.#seen;
    this.#at = Date.now();
    // Where no worker says what runs, Temporal does.
    const keys = running.length > 0 ? running.slice(0, shown).map((child) => child.keys) : undefined;
    // What was seen before stands where Temporal does not answer.
    this.#seen = await this.#watched.handle.attempts({ keys }).catch(() => this.#seen);
    return this.#seen;
  }
}

function noAnswer(error: unknown): undefined {
  // By name: the client's module is loaded only where it is needed.
  if (error instanceof Error && (error.name === 'NoAnswer' || error.name === 'AbortError')) return undefined;
  throw error;
}

async function within<Value>(value: Promise<Value>, milliseconds: number): Promise<Value | 'late'> {
  const timer = new AbortController();
  try {
    return await Promise.race([value, sleep(milliseconds, 'late' as const, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}
