import { type Client, type ScheduleDescription, WorkflowNotFoundError } from '@temporalio/client';
import { shortened } from '../contract.js';
import { RunFailed, runFailed } from './run-failed.js';
import { keeperOf } from './schedule-changes.js';
import { type KeptSchedule, keptSchedule, standingFacts, type StandingSchedules } from './schedule-facts.js';

/** A pipeline's schedule as it stands. */
export interface SeenSchedule extends KeptSchedule {
  readonly pipeline: string;
  /** `deploy` or `schedule add`. */
  readonly keptBy: string;
  /** Present where it is paused, with the note that says why. */
  readonly paused?: string;
  /** The next times, at most three. None while it is paused or where its cron has none. */
  readonly next: readonly Date[];
  readonly lastRun?: ScheduledRun;
  readonly lastHeal?: ScheduledRun;
}

export interface ScheduledRun {
  /** Workflow id. */
  readonly id: string;
  /** When it was due. */
  readonly scheduledAt: Date;
  /** Temporal's word: `running`, `completed`, `failed`, `cancelled`, `terminated`, `timed_out`; or `gone`: no longer kept. */
  readonly ended: string;
  /** Of one that failed the first line of its message, cut to `MAX_MESSAGE_LENGTH`. */
  readonly reason?: string;
}

const NEXT = 3;

/** Reads how a pipeline's schedules stand, and how their last runs ended. */
export async function readSchedule(
  client: Client,
  pipeline: string,
  standing: StandingSchedules,
): Promise<SeenSchedule> {
  const { day, heal } = standing;
  const paused = [day, heal].find((one) => one?.state.paused)?.state;
  const [lastRun, lastHeal] = await Promise.all([lastRunOf(client, day), lastRunOf(client, heal)]);
  return {
    pipeline,
    ...keptSchedule(standingFacts(standing)),
    keptBy: keeperOf(standing) ?? '',
    ...(paused ? { paused: paused.note?.trim() ?? '' } : {}),
    next: paused ? [] : ((day ?? heal)?.info.nextActionTimes ?? []).slice(0, NEXT),
    ...(lastRun && { lastRun }),
    ...(lastHeal && { lastHeal }),
  };
}

async function lastRunOf(client: Client, schedule: ScheduleDescription | undefined): Promise<ScheduledRun | undefined> {
  const last = schedule?.info.recentActions.at(-1);
  if (!last) return undefined;
  const { workflowId: id } = last.action.workflow;
  return { id, scheduledAt: last.scheduledAt, ...(await endOf(client, id)) };
}

async function endOf(client: Client, id: string): Promise<Pick<ScheduledRun, 'ended' | 'reason'>> {
  try {
    const { status, runId } = await client.workflow.getHandle(id).describe();
    const ended = status.name.toLowerCase();
    return status.name === 'FAILED' ? { ended, reason: await reasonOf(client, id, runId) } : { ended };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { ended: 'gone' };
    throw error;
  }
}

/** Why a run has failed, which it has: nothing is waited for. */
async function reasonOf(client: Client, id: string, runId: string): Promise<string | undefined> {
  try {
    await client.workflow.getHandle(id, runId, { followRuns: false }).result();
    return undefined;
  } catch (error) {
    const failed = runFailed(error);
    if (!(failed instanceof RunFailed)) throw error;
    const [first = ''] = `${failed.type}: ${failed.message}`.split('\n');
    return shortened(first);
  }
}
