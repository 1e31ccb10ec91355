import type { Client } from '@temporalio/client';
import { scheduledRunIdOf } from '../contract.js';
import type { TimeBefore } from '../plan/scheduled.js';
import type { Database } from '../warehouse/database.js';
import { hasPlanned, newestPlannedDue } from '../warehouse/scheduled-runs.js';
import { runState } from './run-state.js';
import { timeBefore } from './time-before.js';

const DAY_MS = 86_400_000;
/** Temporal starts a missed run for 30 days, and a little time for doing it: what it starts later, somebody has asked for. */
const OWN_WITHIN_MS = 31 * DAY_MS;
/** How far back a run looks for one before it. */
const LOOKED_BACK_MS = 400 * DAY_MS;

/** A run that a schedule has started. */
export interface ScheduledRun {
  readonly pipeline: string;
  /** Workflow id: Temporal adds the time it was due. */
  readonly id: string;
  readonly scheduledBy: string;
  readonly due: Date;
  /** When Temporal started it. Absent: not known. */
  readonly startedAt?: Date;
}

/**
 * Since when a schedule's run answers for what was finished: the last time before it at which the schedule was due. Where no run
 * of that time has planned anything or is yet to, since it was paused, or due by another cron then, or removed meanwhile, it is
 * the earlier time of the newest run that has, at most 400 days back. So each run goes on from one that answers for what is
 * before, whatever was done to the schedule in between and however late it is planned: a date may be filled twice, and none is
 * left out. A run of a time that is long past goes by the cron alone: somebody has asked for just that. Undefined where nothing
 * is before. Throws as {@link timeBefore}.
 */
export async function sinceWhen(
  client: Client,
  database: Database,
  { pipeline, id, scheduledBy, due, startedAt }: ScheduledRun,
): Promise<TimeBefore | undefined> {
  const cron = await timeBefore(client, scheduledBy, due);
  const prefix = /^(.*-)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.exec(id)?.[1];
  if (prefix === undefined) return cron;
  if (startedAt && startedAt.getTime() - due.getTime() > OWN_WITHIN_MS) return cron;
  if (cron) {
    const before = scheduledRunIdOf(prefix, cron.at);
    if ((await hasPlanned(database, before)) || (await runState(client, before)) === 'running') return cron;
  }
  const planned = await newestPlannedDue(database, pipeline, prefix, {
    from: new Date(due.getTime() - LOOKED_BACK_MS),
    before: due,
    ownWithinMs: OWN_WITHIN_MS,
  });
  if (!planned || (cron && planned >= cron.at)) return cron;
  return { at: planned, zone: cron?.zone ?? 'UTC' };
}
