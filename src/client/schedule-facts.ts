import type { ScheduleDescription, ScheduleOptions } from '@temporalio/client';
import type { Priority } from '@temporalio/common';
import {
  DAY_MS,
  dayOptions,
  healOptions,
  KEEPER_FIELD,
  type Keeper,
  KEEPERS,
  LEDGER_FIELD,
  type ScheduleRequest,
} from './schedule-request.js';

/** What a pipeline's schedules do, field by field, in the words that people read. */
export type ScheduleFacts = Readonly<Record<string, string>>;

/** The two schedules of a pipeline as Temporal has them. */
export interface StandingSchedules {
  readonly day?: ScheduleDescription;
  readonly heal?: ScheduleDescription;
}

/** When a pipeline is filled and healed, as its schedules on Temporal say it. */
export interface KeptSchedule {
  readonly cron: string;
  readonly zone: string;
  /** Absent: only its heal is left. */
  readonly last?: number;
  /** Absent: the pipeline's own. */
  readonly lookback?: number;
  /** Absent: it is not healed. */
  readonly heal?: number;
}

/** A field that is to be another; undefined where there is none, before or after. */
export interface FieldChange {
  readonly field: string;
  readonly from?: string;
  readonly to?: string;
}

/** What one schedule does, from a request and from Temporal alike. */
interface Described {
  /** The workflow, its id, and the priority of its tasks. */
  readonly starts: string;
  /** Runs after which it is over. Absent: never. */
  readonly runsLeft?: number;
  readonly cron: string;
  readonly zone: string;
  readonly keeper: string;
  readonly input: unknown;
  readonly overlap: string;
  readonly catchupMs: number;
  readonly pausesOnFailure: boolean;
}

/** What a request's schedules would do. */
export function requestedFacts(request: ScheduleRequest, taskQueue: string): ScheduleFacts {
  const heal = healOptions(request, taskQueue);
  return facts(ofOptions(dayOptions(request, taskQueue)), heal && ofOptions(heal));
}

/** What the schedules that there are do; fields that somebody has changed by other means too. */
export function standingFacts({ day, heal }: StandingSchedules): ScheduleFacts {
  return facts(day && ofDescription(day), heal && ofDescription(heal));
}

/** The facts that are a schedule's settings. */
export function keptSchedule({ cron, zone, last, lookback, heal, ...others }: ScheduleFacts): KeptSchedule {
  return {
    cron: cron ?? others['heal cron'] ?? '',
    zone: zone ?? others['heal zone'] ?? '',
    ...(last === undefined ? {} : { last: Number(last) }),
    ...(lookback === undefined ? {} : { lookback: Number(lookback) }),
    ...(heal === undefined ? {} : { heal: Number(heal) }),
  };
}

/** The fields in which facts differ. Of a heal that comes or goes, only that. */
export function changesBetween(from: ScheduleFacts, to: ScheduleFacts): FieldChange[] {
  const whole = from.heal === undefined || to.heal === undefined;
  return [...new Set([...Object.keys(to), ...Object.keys(from)])]
    .filter((field) => from[field] !== to[field] && !(whole && field.startsWith('heal ')))
    .map((field) => ({ field, from: from[field], to: to[field] }));
}

function facts(day: Described | undefined, heal: Described | undefined): ScheduleFacts {
  const of = day && {
    cron: day.cron,
    zone: day.zone,
    'kept by': day.keeper,
    ...inputFacts(day.input),
    ...policyFacts(day),
  };
  if (!heal) return of ?? {};
  const { last, ...input } = inputFacts(heal.input);
  const healing = {
    // Like the day's, and so said once.
    ...(heal.cron === day?.cron ? {} : { cron: heal.cron }),
    ...(heal.zone === day?.zone ? {} : { zone: heal.zone }),
    ...(heal.keeper === day?.keeper ? {} : { 'kept by': heal.keeper }),
    ...input,
    ...policyFacts(heal),
  };
  const named = Object.entries(healing).map(([field, value]): [string, string] => [`heal ${field}`, value]);
  return { ...of, heal: last ?? '', ...Object.fromEntries(named) };
}

function inputFacts(input: unknown): Record<string, string> {
  if (typeof input !== 'object' || input === null) return {};
  const { pipeline: _pipeline, ...fields } = input as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => [
      field,
      typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value),
    ]),
  );
}

function policyFacts({ starts, runsLeft, overlap, catchupMs, pausesOnFailure }: Described): Record<string, string> {
  return {
    starts,
    ...(runsLeft === undefined ? {} : { 'runs left': String(runsLeft) }),
    overlap,
    'catch-up': `${catchupMs / DAY_MS} d`,
    'pause on failure': pausesOnFailure ? 'yes' : 'no',
  };
}

function ofOptions({ spec, action, policies }: ScheduleOptions): Described {
  return {
    starts: startsText(action),
    cron: (spec.cronExpressions?.[0] ?? '').split(' # ')[0] ?? '',
    zone: spec.timezone ?? 'UTC',
    keeper: keeperIn(action.memo) ?? '',
    input: (action.args as readonly unknown[] | undefined)?.[0],
    overlap: policies?.overlap ?? '',
    catchupMs: Number(policies?.catchupWindow),
    pausesOnFailure: policies?.pauseOnFailure ?? false,
  };
}

function ofDescription({ spec, action, policies, state }: ScheduleDescription): Described {
  return {
    starts: startsText(action),
    runsLeft: state.remainingActions,
    cron: cronOf(spec),
    zone: spec.timezone || 'UTC',
    keeper: keeperIn(action.memo) ?? 'others',
    input: action.args?.[0],
    overlap: policies.overlap ?? '',
    catchupMs: policies.catchupWindow,
    pausesOnFailure: policies.pauseOnFailure,
  };
}

/** `backfill of sales as backfill/sales/scheduled, priority 2`. */
function startsText({ workflowType, workflowId = '', args, ...action }: ScheduleOptions['action']): string {
  const type = typeof workflowType === 'string' ? workflowType : workflowType.name;
  const { pipeline } = ((args as readonly unknown[] | undefined)?.[0] ?? {}) as { readonly pipeline?: unknown };
  // The type of an action that is asked for leaves its priority out.
  const { priorityKey } = (action as { readonly priority?: Priority }).priority ?? {};
  return `${type} of ${String(pipeline)} as ${workflowId}, priority ${priorityKey ?? 'none'}`;
}

/** Who keeps a schedule of ours; undefined for one of others. */
export function keeperIn(memo: Readonly<Record<string, unknown>> | undefined): Keeper | undefined {
  return KEEPERS.find((keeper) => keeper === memo?.[KEEPER_FIELD]);
}

/** For which ledger a schedule of ours was made; undefined where it does not say. */
export function ledgerIn(memo: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const ledger = memo?.[LEDGER_FIELD];
  return typeof ledger === 'string' ? ledger : undefined;
}

/** The cron that a spec was made from; other words for one that somebody has changed since. */
function cronOf({
  calendars = [],
  intervals = [],
  skip = [],
  startAt,
  endAt,
  jitter,
}: ScheduleDescription['spec']): string {
  const [calendar, ...others] = calendars;
  const changed = others.length + intervals.length + skip.length > 0 || startAt || endAt || jitter;
  return !changed && calendar?.comment ? calendar.comment : 'other times';
}
