import { ApplicationFailure, CancelledFailure } from '@temporalio/workflow';
import type { BackfillPlan } from '../activities/messages.js';
import type { BackfillResult } from '../contract.js';
import type { Downstream } from './downstream.js';
import type { Tally } from './tally.js';

/** What a backfill returns, also as the first detail of its failure. `stopped`: with partitions left. */
export function resultOf(plan: BackfillPlan, tally: Tally, stopped: boolean, downstream?: Downstream): BackfillResult {
  const { pipeline, first, last, total, notes, dryRun, resting } = plan;
  const listed = downstream?.results ?? dryRun?.downstream;
  return {
    pipeline,
    first,
    last,
    total,
    ...tally.counts(),
    failures: tally.failures,
    ...(stopped ? { stopped: true } : {}),
    ...(listed ? { downstream: listed } : {}),
    ...(resting === undefined ? {} : { resting }),
    ...(tally.leftNotReady ? { leftNotReady: tally.leftNotReady.count } : {}),
    notes: [...notes, ...leftNote(tally), ...(downstream?.notes ?? [])],
    ...(dryRun ? { plan: dryRun.plan, counts: dryRun.counts, keys: dryRun.keys } : {}),
  };
}

function leftNote({ leftNotReady }: Tally): string[] {
  if (!leftNotReady) return [];
  const { count, keys, reason } = leftNotReady;
  const were = count === 1 ? '1 partition was not ready and is' : `${count} partitions were not ready and are`;
  const more = count > keys.length ? `, and ${count - keys.length} more` : '';
  const why = reason === undefined ? '' : ` ${keys[0]}: ${reason}`;
  return [`${were} left to the next heal: ${keys.join(', ')}${more}.${why}`];
}

/** The failure of a backfill of which some partitions failed. `why`: what made it stop by itself. */
export function incomplete(plan: BackfillPlan, tally: Tally, stopped: boolean, why?: string): ApplicationFailure {
  const named = tally.failures.map(({ key, type }) => `${key} (${type})`).join(', ');
  const more = tally.failed > tally.failures.length ? ', …' : '';
  const left = tally.left(plan.total);
  const end = stopped
    ? ` It was stopped with ${left} left${why === undefined ? '' : `, since ${why.replace(/\.$/, '')}`}.`
    : '';
  // What another run was at is as that one leaves it.
  const busy = tally.failures.some(({ type }) => type === 'Busy' || type === 'Conflict');
  const only = left > 0 || busy ? 'only: ["missing", "failed", "outdated"]' : 'only: ["failed"]';
  return ApplicationFailure.nonRetryable(
    `${tally.failed} of ${plan.total} partitions of ${plan.pipeline} failed: ${named}${more}. They hold what they held before.${end} ` +
      `Mend the cause, then run it again with ${only}.`,
    'BackfillIncomplete',
    resultOf(plan, tally, stopped),
  );
}

/** The failure of a backfill that is filled itself, and of what depends on it something is not. */
export function incompleteDownstream(plan: BackfillPlan, tally: Tally, downstream: Downstream): ApplicationFailure {
  const { results, wanting } = downstream;
  const reasons = results.flatMap(({ pipeline, id = pipeline, reason }) =>
    reason === undefined ? [] : [`${id}: ${reason}`],
  );
  const rest = wanting.filter((name) =>
    results.some(({ pipeline, id, reason }) => pipeline === name && id === undefined && reason === undefined),
  );
  const notBegun = rest.length > 0 ? ` Not begun, since they come after these: ${rest.join(', ')}.` : '';
  return ApplicationFailure.nonRetryable(
    `All ${plan.total} partitions of ${plan.pipeline} are filled; what depends on them is not. ${reasons.join(' ')}${notBegun} ` +
      'Mend the cause, then run those with `downstream` again.',
    'BackfillIncomplete',
    resultOf(plan, tally, false, downstream),
  );
}

export function wasCancelled(plan: BackfillPlan, tally: Tally): CancelledFailure {
  return new CancelledFailure(
    `Cancelled: ${tally.filled} of ${plan.total} partitions of ${plan.pipeline} are filled, ${tally.failed} failed.`,
  );
}
