import {
  ActivityCancellationType,
  type ActivityFailure,
  proxyActivities,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { ControlActivities } from '../activities/create-activities.js';
import { controlQueue, DEFAULTS } from '../contract.js';

const RETRY = { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' } as const;
/** Milliseconds in which a worker that is there says which runs have ended. */
const MOMENT_MS = 5_000;

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

/**
 * What plans a backfill, and what depends on it: as {@link control}, with time to ask a source about each of many partitions. `waits`: however long the
 * world is away, since nobody sees a scheduled run give up, and its date would be in no later one.
 */
export function planning({
  waits,
}: {
  readonly waits: boolean;
}): Pick<ControlActivities, 'planBackfill' | 'planDownstream'> {
  return proxyActivities<ControlActivities>({
    taskQueue: controlQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '6 hours',
    heartbeatTimeout: '10s',
    scheduleToCloseTimeout: waits ? undefined : DEFAULTS.giveUpAfterMs,
    retry: RETRY,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });
}

/**
 * The activities that wait for other runs, until a time in milliseconds since the epoch. They heartbeat, so a lost worker is
 * noticed. Where that time is over, or nearly, they still have a moment to say what has ended before.
 */
export function waiting(until: number): Pick<ControlActivities, 'awaitPartition' | 'awaitPartitions' | 'awaitRun'> {
  return proxyActivities<ControlActivities>({
    taskQueue: controlQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1 day',
    heartbeatTimeout: '15s',
    scheduleToCloseTimeout: until < Infinity ? Math.max(until - Date.now(), MOMENT_MS) : undefined,
    retry: RETRY,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
  });
}

/** Milliseconds after which an event that nobody has taken is told no more. */
const TELL_WITHIN_MS = 86_400_000;

/** The activity that tells of an event: for a day, at least every ten minutes. */
export function telling(): Pick<ControlActivities, 'tell'> {
  return proxyActivities<ControlActivities>({
    taskQueue: controlQueue(workflowInfo().taskQueue),
    // A command has a minute.
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '15s',
    scheduleToCloseTimeout: TELL_WITHIN_MS,
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10m' },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
  });
}

/** Whether an activity has failed since its time was over, rather than by what it found. */
export function isTimeUp(error: ActivityFailure): boolean {
  return error.cause instanceof TimeoutFailure || error.retryState === 'TIMEOUT';
}
