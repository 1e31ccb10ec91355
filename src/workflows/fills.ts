import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { FillActivities } from '../activities/create-activities.js';
import type { FillPolicy } from '../activities/messages.js';
import { keysName } from '../contract.js';

/** Added to the time limits of an attempt's fills, by which each ends itself, before Temporal gives the attempt up. */
const GRACE_MS = 30_000;

/** The activities that fill: each attempt has `timeoutMs` for each of the keys, and all attempts together `giveUpAfterMs`. */
export function fills(policy: FillPolicy, keys: readonly string[]): FillActivities {
  return proxyActivities<FillActivities>({
    heartbeatTimeout: '15s',
    startToCloseTimeout: keys.length * policy.timeoutMs + GRACE_MS,
    scheduleToCloseTimeout: policy.giveUpAfterMs,
    // No maximumAttempts: the ledger's claim counts what counts against the pipeline, and the world's faults count for nothing.
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary: keysName(keys),
  });
}
