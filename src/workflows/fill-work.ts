import { patched } from '@temporalio/workflow';
import type { FillPolicy } from '../activities/messages.js';
import type { BusyKeys, WaitingKeys } from './carried.js';
import { afterFailure } from './failure-rule.js';
import { type ChildOutcomes, fillChild, runsOf, type WhereToWait } from './fill-child.js';
import type { Batch } from './key-pager.js';
import type { Remaining, Work } from './remaining.js';
import type { Shared } from './shared.js';
import type { ChildOutcome } from './tally.js';
import type { WaitingClock } from './waiting-clock.js';

/**
 * Fills what a lane has taken, counts how it ended, and puts what is to be tried again behind the others. Says whether some of
 * it waits for other runs.
 */
export async function fillWork(shared: Shared, remaining: Remaining, work: Work): Promise<boolean> {
  const { plan, tally, steering } = shared;
  const { line, busy } = remaining;
  const { clock } = steering;
  const { keys, retry, since = clock.now() } = work;
  if (retry && work.since === undefined) for (const key of keys) tally.takeAgain(key);
  const until = since + plan.policy.giveUpAfterMs;
  const { leavesAfterMs } = remaining;
  const isHeal = leavesAfterMs !== undefined;
  const waitsUntil = isHeal ? since + leavesAfterMs : until;
  const mayWait = plan.asksReady === true && clock.now() < waitsUntil && line.reserve(keys);
  let reserved: Batch = mayWait ? keys : [];
  // What a person has asked for once more is not left: it has failed, and fails again.
  const yields = mayWait || (isHeal && !retry);
  const notReady: FillPolicy['notReady'] = yields ? 'yield' : !isHeal && clock.now() < until ? undefined : 'fail';
  const whereToWait = (batch: Batch): WhereToWait => {
    if (!patched('busy-line')) return { until: Infinity };
    if (clock.now() >= until) return 'no longer';
    if (reserved === keys) return 'behind the others';
    if (!line.reserve(batch)) return { until: clock.reaches(until), isPaused: () => clock.stands };
    reserved = [...reserved, ...batch];
    return 'behind the others';
  };
  remaining.begin(keys);
  const outcomes = await fillChild(plan, keys, notReady, whereToWait);
  remaining.end(keys);
  line.settle(reserved, mayWait ? waitingAgain(work, outcomes, line.size, since, waitsUntil, clock) : []);
  const groups = busyAgain(work, outcomes, since);
  for (const group of groups) busy.add(group);
  for (const [key, outcome] of outcomes) {
    const left = outcome.kind === 'not ready' && !mayWait;
    settle(shared, remaining, key, left ? { kind: 'left', reason: outcome.reason } : outcome, retry);
  }
  return groups.length > 0;
}

/** Counts how a partition has ended, and does what follows from that. */
export function settle(shared: Shared, remaining: Remaining, key: string, outcome: ChildOutcome, retry?: true): void {
  const { plan, tally, steering, retry: pass, notices } = shared;
  if (retry && outcome.kind === 'skipped') {
    // It has failed in this backfill, and nobody has filled it for this one.
    const message = 'Another run fills this partition, which has failed before. Retry once that has ended.';
    return settle(shared, remaining, key, { kind: 'failed', type: 'Busy', message });
  }
  tally.add(key, outcome);
  if (outcome.kind === 'filled' || outcome.kind === 'skipped') pass.endedWell(key);
  if (outcome.kind !== 'failed') return;
  const { type, message } = outcome;
  notices.failed({ key, type, message });
  if (remaining.done && !remaining.line.hasReserved) steering.countFailure();
  else afterFailure(plan, steering, { key, type, message });
}

/** Keys in the line beyond which each waits longer, so that all together are not looked at more often. */
const LONG_LINE = 500;

/**
 * The groups of a child's keys that are to be tried again, each once it was said to be worth it, and once when time is up. Where
 * that may be prolonged, it is by as long as they have waited, at most to what was said, or more where many wait.
 */
function waitingAgain(
  { keys, retry }: Work,
  outcomes: ChildOutcomes,
  waiting: number,
  since: number,
  until: number,
  clock: WaitingClock,
): WaitingKeys[] {
  const waited = clock.now() - since;
  const delay = (key: string): number | undefined => {
    const outcome = outcomes.get(key);
    if (outcome?.kind !== 'not ready') return undefined;
    const { retryAfterMs, longestWaitMs = 0 } = outcome;
    return Math.max(retryAfterMs, Math.min(waited, longestWaitMs * Math.max(1, waiting / LONG_LINE)));
  };
  return runsOf(keys, (key) => delay(key) !== undefined).map((run) => {
    const wait = Math.min(...run.map((key) => delay(key) ?? 0));
    return { keys: run, since, due: Math.min(Date.now() + wait, clock.reaches(until)), retry };
  });
}

/** The groups of a child's keys that other runs fill, each with its run. */
function busyAgain({ keys, retry }: Work, outcomes: ChildOutcomes, since: number): BusyKeys[] {
  const other = (key: string): string | undefined => {
    const outcome = outcomes.get(key);
    return outcome?.kind === 'busy' ? outcome.id : undefined;
  };
  const ids = new Set(keys.flatMap((key) => other(key) ?? []));
  return [...ids].flatMap((id) =>
    runsOf(keys, (key) => other(key) === id).map((run) => ({ id, keys: run, since, retry })),
  );
}
