import type { Client } from '@temporalio/client';
import { msToTs, tsToMs } from '@temporalio/common/lib/time.js';
import type { TimeBefore } from '../plan/scheduled.js';
import { isNotThere, unanswered } from './unanswered.js';

/** Milliseconds in which Temporal answers. */
const ANSWER_WITHIN_MS = 10_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/**
 * How far back the time before is looked for, step by step: what an hourly, a daily, a monthly and a yearly schedule need, and
 * one of 29 February. An answer is cut at 1,000 times, so the near past is asked about first.
 */
const STEPS_MS = [HOUR_MS, 2 * DAY_MS, 40 * DAY_MS, 400 * DAY_MS, 3_000 * DAY_MS];

/**
 * The last time before `at` at which a schedule is due by the spec that it has now, as Temporal itself reads that, and its zone;
 * whether it ran then does not matter. Undefined where there is none, and for a schedule that is no more. Throws as
 * {@link unanswered}, since a run that does not know it could leave a date out.
 */
export async function timeBefore(client: Client, scheduleId: string, at: Date): Promise<TimeBefore | undefined> {
  const { namespace } = client.options;
  const asked = { namespace, scheduleId };
  try {
    const { schedule } = await answer(client, () => client.workflowService.describeSchedule(asked));
    for (const step of STEPS_MS) {
      const due = (await lastTimes(at.getTime() - step)).at(-1);
      if (due !== undefined) return { at: new Date(due), zone: schedule?.spec?.timezoneName || 'UTC' };
    }
    return undefined;
  } catch (error) {
    if (isNotThere(error)) return undefined;
    throw unanswered(error, `when the schedule ${scheduleId} was due before ${at.toISOString()}`);
  }

  /** The last of the times behind `from` and before `at`, in milliseconds since the epoch. */
  async function lastTimes(from: number): Promise<readonly number[]> {
    let last: readonly number[] = [];
    for (let behind = from; ;) {
      const { startTime } = await answer(client, () =>
        client.workflowService.listScheduleMatchingTimes({
          ...asked,
          startTime: msToTs(behind),
          endTime: msToTs(at.getTime() - 1),
        }),
      );
      const times = (startTime ?? []).map((time) => tsToMs(time)).filter((time) => time > behind);
      if (times.length === 0) return last;
      last = times;
      behind = times.at(-1) ?? behind;
    }
  }
}

function answer<Answer>(client: Client, ask: () => Promise<Answer>): Promise<Answer> {
  return client.withDeadline(Date.now() + ANSWER_WITHIN_MS, ask);
}
