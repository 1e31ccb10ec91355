import { ActivityCancellationType, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ControlActivities } from '../activities/create-activities.js';
import { controlQueue, DEFAULTS } from '../contract.js';

const RETRY = { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' } as const;

/**
 * The activities that plan, look and record, on the control queue, so that they never wait behind fills. What the world does
 * wrong is retried for `giveUpAfterMs`; a cancel waits until the attempt that runs has ended, so that none writes after it.
 */
export function control(giveUpAfterMs: number = DEFAULTS.giveUpAfterMs): ControlActivities {
  return proxyActivities<ControlActivities>({
    taskQueue: controlQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '2 minutes',
    // A frozen worker still takes tasks from the queue for a while: each is given to another one after this.
    heartbeatTimeout: '10s',
    scheduleToCloseTimeout: giveUpAfterMs,
    retry: RETRY,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });
}

/** The one activity that waits for as long as another run takes. It heartbeats, so a lost worker is noticed. */
export function waiting(): Pick<ControlActivities, 'awaitPartition'> {
  return proxyActivities<ControlActivities>({
    taskQueue: controlQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1 day',
    heartbeatTimeout: '15s',
    retry: RETRY,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
  });
}
