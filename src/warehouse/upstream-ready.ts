import { Failure } from '../failure.js';
import type { Database } from './database.js';
import type { FillRequest } from './fill-request.js';
import { inTheWayOf, inTheWayText } from './in-the-way.js';
import { registeredPipelines } from './ledger.js';
import { type ComesAfter, comesAfterOf } from './upstream.js';

/** Milliseconds until it is looked again: the first, doubled with each attempt of one activity, and the longest. */
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [10_000, 300_000];

/**
 * Refuses a partition before those that it comes after are filled, and they themselves not older than what they come after: all
 * that overlap its window, from their pipelines' `start` on. For a window that is not over yet those that are over are enough.
 * Returns what it comes after; a pipeline that comes after none pays nothing. Throws `SourceNotReady`, naming the first that stand
 * in the way, and why; a final one where waiting is of no use, since a pipeline above is not registered, or in a circle.
 */
export async function refuseBeforeUpstream(
  database: Database,
  { pipeline, window, unfinished, attempt }: Pick<FillRequest, 'pipeline' | 'window' | 'unfinished' | 'attempt'>,
): Promise<ComesAfter | undefined> {
  const { name, partition, after = [] } = pipeline;
  if (after.length === 0) return undefined;
  const registered = await registeredPipelines(database);
  const around = { database, registered, ...(unfinished ? { finishedBy: new Date() } : {}) };
  const span = { from: window.key, to: window.key };
  const reasons = (await inTheWayOf(around, { grid: partition, after }, span)).get(window.key);
  if (!reasons) return comesAfterOf(partition, after, registered);
  const never = reasons.filter(({ key }) => key === undefined);
  if (never.length > 0) {
    throw new Failure(
      'SourceNotReady',
      `${name} ${window.key} comes after ${inTheWayText(never)}, and waits for nothing that could come: start a worker that serves it, or mend \`after\`.`,
      { final: true },
    );
  }
  const retryAfterMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(attempt.number - 1, 10), LONGEST_WAIT_MS);
  throw new Failure(
    'SourceNotReady',
    `${name} ${window.key} comes after ${inTheWayText(reasons)}. It is filled once that is; \`repave status\` says how they stand.`,
    { retryAfterMs, longestWaitMs: LONGEST_WAIT_MS },
  );
}
