import type { BackfillPlan } from '../activities/messages.js';
import { DEFAULTS, type PartitionFailure } from '../contract.js';
import type { Steering } from './steering.js';

/** Failures that a reason names. */
const NAMED = 3;
/** Characters of a failure's message that a reason keeps. */
const MAX_TOLD = 200;

/** Does what the plan's `onFailure` says once so many have failed. While the canary is filled, its own rule stands. */
export function afterFailure(plan: BackfillPlan, steering: Steering, failure: PartitionFailure): void {
  steering.countFailure();
  const { onFailure = 'continue', maxFailures = DEFAULTS.maxFailures } = plan;
  if (steering.canary !== undefined || steering.failedSince < maxFailures) return;
  const count = steering.failedSince === 1 ? '1 partition has' : `${steering.failedSince} partitions have`;
  const reason = `${count} failed; the last: ${told(failure)}`;
  switch (onFailure) {
    case 'continue':
      return;
    case 'pause':
      return steering.pauseItself('failures', reason);
    case 'stop':
      return steering.stopItself(reason);
    default:
      onFailure satisfies never;
  }
}

/** Ends the canary: with none of its partitions failed, the others follow; else the backfill pauses or stops. */
export function afterCanary(plan: BackfillPlan, steering: Steering, failures: readonly PartitionFailure[]): void {
  const failed = steering.failedSince;
  const { canary = 0 } = plan;
  steering.passCanary();
  if (failed === 0) return;
  const named = failures.slice(-Math.min(failed, NAMED)).map(told).join('; ');
  const of = canary === 1 ? 'the first partition (canary)' : `${failed} of the first ${canary} partitions (canary)`;
  const reason = `${of} failed: ${named}`;
  if (plan.onFailure === 'pause') steering.pauseItself('canary', reason);
  else steering.stopItself(reason);
}

function told({ key, type, message }: PartitionFailure): string {
  const short = message.length <= MAX_TOLD ? message : `${message.slice(0, MAX_TOLD - 1)}…`;
  return `${key} (${type}): ${short}`;
}
