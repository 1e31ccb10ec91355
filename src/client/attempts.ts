import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import { MAX_CONCURRENCY } from '../contract.js';
import { describeRun } from './describe-run.js';

/** What a backfill or one of its children is at: an activity that runs, or waits to be tried. */
export interface Attempt {
  /** The child's keys, as `progress` names them. Absent: it is the backfill's own, such as its plan. */
  readonly keys?: string;
  /** The activity's name: `fillPartition`, `planBackfill`, … */
  readonly activity: string;
  /** Which attempt runs, or is to come: 1 is the first. */
  readonly attempt: number;
  /** `waiting`: for its next attempt, or for a worker that takes it. */
  readonly state: 'running' | 'waiting';
  /** ISO instant since which the attempt runs, or waits. */
  readonly since: string;
  /** Why the attempt before has failed. Absent: there was none. */
  readonly failure?: { readonly type: string; readonly message: string };
}

/** Children that are asked at most; and at once. */
const ASKED = MAX_CONCURRENCY;
const AT_ONCE = 10;
/** Of `temporal.api.enums.v1.PendingActivityState`: an attempt has begun; it has, and was asked to end. */
const BEGUN: readonly number[] = [2, 3];
/** Of `temporal.api.enums.v1.TimeoutType`. */
const HEARTBEAT = 4;

/**
 * What a backfill and its running children are at, the backfill's own first, by asking the server of each: no worker need run.
 * A child that has just ended, or has not begun, has none. With `keys`, only of the children of these.
 */
export async function readAttempts(client: Client, id: string, keys?: readonly string[]): Promise<Attempt[]> {
  const { raw } = await describeRun(client, id);
  const children = (raw.pendingChildren ?? [])
    .map(({ workflowId }) => workflowId ?? '')
    .filter((child) => keys === undefined || keys.includes(keysOf(child)))
    .sort()
    .slice(0, ASKED);
  const found: Attempt[][] = [attemptsIn(raw)];
  let next = 0;
  const ask = async (): Promise<void> => {
    for (let at = next++; at < children.length; at = next++) {
      found[at + 1] = await attemptsOfChild(client, children[at] ?? '');
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, ask));
  return found.flat();
}

async function attemptsOfChild(client: Client, id: string): Promise<Attempt[]> {
  try {
    const { raw } = await describeRun(client, id);
    return attemptsIn(raw, keysOf(id));
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return [];
    throw error;
  }
}

/** A child's keys, as its workflow id ends. */
function keysOf(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1);
}

function attemptsIn({ pendingActivities }: WorkflowExecutionDescription['raw'], keys?: string): Attempt[] {
  return (pendingActivities ?? []).map((pending) => {
    const begun = BEGUN.includes(Number(pending.state));
    const since = begun ? pending.lastStartedTime : (pending.lastAttemptCompleteTime ?? pending.scheduledTime);
    return {
      ...(keys === undefined ? {} : { keys }),
      activity: pending.activityType?.name ?? '',
      attempt: pending.attempt || 1,
      state: begun ? 'running' : 'waiting',
      since: instant(since),
      ...(pending.lastFailure?.message ? { failure: failureIn(pending.lastFailure) } : {}),
    };
  });
}

type TemporalFailure = NonNullable<
  NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number]['lastFailure']
>;

function failureIn({ message, applicationFailureInfo, timeoutFailureInfo }: TemporalFailure): Attempt['failure'] {
  if (timeoutFailureInfo) {
    const lost = Number(timeoutFailureInfo.timeoutType) === HEARTBEAT;
    return { type: 'TimedOut', message: lost ? 'Its worker was lost.' : (message ?? '') };
  }
  return { type: applicationFailureInfo?.type || 'Unexpected', message: message ?? '' };
}

function instant(time: { readonly seconds?: unknown; readonly nanos?: number | null } | null | undefined): string {
  return new Date(Number(time?.seconds ?? 0) * 1000 + Math.floor((time?.nanos ?? 0) / 1e6)).toISOString();
}
