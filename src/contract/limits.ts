/** Defaults and bounds. Durations in milliseconds. */

export const DEFAULT_CONCURRENCY = 4;
export const MAX_CONCURRENCY = 100;
/** Neighbouring partitions that one child workflow may fill. */
export const MAX_BATCH = 100;
/** Entries of `keys`. */
export const MAX_KEYS = 10_000;
/** Failures that a result or `progress` lists; the ledger has them all. */
export const MAX_LISTED_FAILURES = 10;
/** Characters of a failure's message that a result keeps; the ledger has all of it. */
export const MAX_MESSAGE_LENGTH = 300;
/** A failure's message as results, histories and notices keep it. */
export function shortened(message: string): string {
  return message.length <= MAX_MESSAGE_LENGTH ? message : `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}
/** Partitions of a backfill that wait behind its others, since their sources are not ready or other runs fill them; those beyond hold a lane. */
export const MAX_WAITING = 1_000;
/** The same of a pipeline that comes after others, where one upstream that is not filled holds up many partitions at once. */
export const MAX_WAITING_AFTER = 5_000;
/** Keys that a dry run lists. */
export const MAX_LISTED_KEYS = 100;
/** Characters of the reason that a `pause` keeps. */
export const MAX_REASON_LENGTH = 200;
/** What a `pause`'s reason must not hold: it stands in one line, and a database does not take all of these. */
// eslint-disable-next-line no-control-regex
export const NOT_IN_A_REASON = /[\u0000-\u001f\u007f]/;
/** Levers whose ids a backfill remembers, so that one that arrives twice is pulled once. */
export const MAX_REMEMBERED_LEVERS = 100;

/** See the design of the two budgets in docs: `attempts` counts the pipeline's own faults only. */
export const DEFAULTS = {
  timeoutMs: 3_600_000,
  retryAttempts: 3,
  giveUpAfterMs: 86_400_000,
  priority: 3,
  /** Until a pipeline's `ready`, which said no, is asked again. */
  readyRetryMs: 60_000,
  /** Of `onFailure` `pause` and `stop`. */
  maxFailures: 1,
  /** Times that healing tries what fails in the same way. */
  healTries: 3,
  /** For so long a heal tries what is not ready; then it leaves it to the next heal. */
  healWaitsMs: 3_600_000,
  /** Partitions that a schedule's run fills: the newest finished one, with all that were finished since the scheduled time before. */
  scheduledLast: 1,
  schedulePriority: 2,
  healPriority: 5,
} as const;
