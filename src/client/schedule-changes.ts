import {
  changesBetween,
  type FieldChange,
  keeperIn,
  ledgerIn,
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
  | { readonly kind: 'removed'; readonly was: KeptSchedule; readonly ledger?: string }
);

/** Schedules that `deploy` does not touch. */
export interface LeftAlone {
  readonly pipeline: string;
  readonly why: string;
  /** A file asks for another schedule, which is not made. */
  readonly wanted?: true;
  /** For which ledger it was made, where that is why. */
  readonly ledger?: string;
}

export interface ScheduleComparison {
  /** By pipeline; none where all is as it should be. */
  readonly changes: readonly ScheduleChange[];
  readonly leftAlone: readonly LeftAlone[];
}

/**
 * Compares what files ask for with the schedules that there are, by pipeline. What no file asks for any more is removed where
 * `deploy` made it, for workers of the same task queue and for one of these `ledgers`, or without saying for which; `unread` are
 * pipelines of which no file could be read.
 */
export function compareSchedules(
  wanted: readonly ScheduleRequest[],
  standing: ReadonlyMap<string, StandingSchedules>,
  unread: readonly string[],
  taskQueue: string,
  ledgers: readonly string[],
): ScheduleComparison {
  const changes: ScheduleChange[] = [];
  const leftAlone: LeftAlone[] = [];
  const requests = new Map(wanted.map((request) => [request.pipeline, request]));
  for (const pipeline of [...new Set([...requests.keys(), ...standing.keys()])].sort()) {
    const request = requests.get(pipeline);
    const there = standing.get(pipeline) ?? {};
    const others = othersOwn(there, taskQueue);
    const ledger = ledgerOf(there);
    if (others !== undefined) {
      // What others run beside us is no news where nobody asks for it here.
      if (request) leftAlone.push({ pipeline, why: others, wanted: true });
    } else if (request) {
      if (!there.day && !there.heal) changes.push({ kind: 'added', pipeline, request });
      else {
        const fields = [
          ...changesBetween(standingFacts(there), requestedFacts(request, taskQueue)),
          ...markChange(ledger, request.ledger),
        ];
        if (fields.length > 0) changes.push({ kind: 'changed', pipeline, request, fields });
      }
    } else if (unread.includes(pipeline)) {
      leftAlone.push({ pipeline, why: 'its file cannot be read' });
    } else if (keeperOf(there) !== 'deploy') {
      leftAlone.push({ pipeline, why: 'it was made by `repave schedule add`' });
    } else if (ledger !== undefined && !ledgers.includes(ledger)) {
      leftAlone.push({ pipeline, why: otherLedger(pipeline, ledger), ledger });
    } else {
      const was = keptSchedule(standingFacts(there));
      changes.push({ kind: 'removed', pipeline, was, ...(ledger === undefined ? {} : { ledger }) });
    }
  }
  return { changes, leftAlone };
}

/** Which ledger they are marked with changes where it is known which they are for: by the mark another project leaves them alone. */
function markChange(from: string | undefined, to: string | undefined): FieldChange[] {
  return to === undefined || from === to ? [] : [{ field: 'ledger', from, to }];
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

/** For which ledger the schedules were made; undefined where they do not say. */
export function ledgerOf({ day, heal }: StandingSchedules): string | undefined {
  return ledgerIn((day ?? heal)?.action.memo);
}

function otherLedger(pipeline: string, ledger: string): string {
  return (
    `it was made for the ledger ${ledger}, which is none of this project that was asked: another project’s on this task queue, say ` +
    `(if it is to go: repave schedule remove ${pipeline})`
  );
}
