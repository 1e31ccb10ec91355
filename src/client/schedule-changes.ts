import {
  changesBetween,
  type FieldChange,
  keeperIn,
  type KeptSchedule,
  keptSchedule,
  requestedFacts,
  standingFacts,
  type StandingSchedules,
} from './schedule-facts.js';
import type { ScheduleRequest } from './schedule-request.js';

/** What `deploy` would do to one pipeline's schedules. */
export type ScheduleChange = { readonly pipeline: string } & (
  | { readonly kind: 'added'; readonly request: ScheduleRequest }
  | { readonly kind: 'changed'; readonly request: ScheduleRequest; readonly fields: readonly FieldChange[] }
  | { readonly kind: 'removed'; readonly was: KeptSchedule }
);

/** Schedules that `deploy` does not touch. */
export interface LeftAlone {
  readonly pipeline: string;
  readonly why: string;
  /** A file asks for another schedule, which is not made. */
  readonly wanted?: true;
}

export interface ScheduleComparison {
  /** By pipeline; none where all is as it should be. */
  readonly changes: readonly ScheduleChange[];
  readonly leftAlone: readonly LeftAlone[];
}

/**
 * Compares what files ask for with the schedules that there are, by pipeline. What no file asks for any more is removed where
 * `deploy` made it, for workers of the same task queue; `unread` are pipelines of which no file could be read.
 */
export function compareSchedules(
  wanted: readonly ScheduleRequest[],
  standing: ReadonlyMap<string, StandingSchedules>,
  unread: readonly string[],
  taskQueue: string,
): ScheduleComparison {
  const changes: ScheduleChange[] = [];
  const leftAlone: LeftAlone[] = [];
  const requests = new Map(wanted.map((request) => [request.pipeline, request]));
  for (const pipeline of [...new Set([...requests.keys(), ...standing.keys()])].sort()) {
    const request = requests.get(pipeline);
    const there = standing.get(pipeline) ?? {};
    const others = othersOwn(there, taskQueue);
    if (others !== undefined) {
      // What others run beside us is no news where nobody asks for it here.
      if (request) leftAlone.push({ pipeline, why: others, wanted: true });
    } else if (request) {
      if (!there.day && !there.heal) changes.push({ kind: 'added', pipeline, request });
      else {
        const fields = changesBetween(standingFacts(there), requestedFacts(request, taskQueue));
        if (fields.length > 0) changes.push({ kind: 'changed', pipeline, request, fields });
      }
    } else if (unread.includes(pipeline)) {
      leftAlone.push({ pipeline, why: 'its file cannot be read' });
    } else if (keeperOf(there) !== 'deploy') {
      leftAlone.push({ pipeline, why: 'it was made by `repave schedule add`' });
    } else changes.push({ kind: 'removed', pipeline, was: keptSchedule(standingFacts(there)) });
  }
  return { changes, leftAlone };
}

/** Why the schedules are not ours to touch; undefined where they are, or where there are none. */
export function othersOwn({ day, heal }: StandingSchedules, taskQueue: string): string | undefined {
  for (const one of [day, heal]) {
    if (!one) continue;
    if (keeperIn(one.action.memo) === undefined) {
      return (
        `the schedule ${one.scheduleId} was not made by Repave, or has lost what says so ` +
        `(if it is, remove it: temporal schedule delete --schedule-id ${one.scheduleId})`
      );
    }
    if (one.action.taskQueue !== taskQueue) {
      return `the schedule ${one.scheduleId} starts its runs on the task queue ${one.action.taskQueue}, this is ${taskQueue}`;
    }
  }
  return undefined;
}

/** Who keeps the schedules; undefined where there are none. */
export function keeperOf({ day, heal }: StandingSchedules): string | undefined {
  return keeperIn((day ?? heal)?.action.memo);
}
