import type { KeptSchedule, ScheduledRun, SeenSchedule } from '../client.js';
import type { Output } from './output.js';
import type { Column } from './table.js';
import { oneLine } from './width.js';

/** When a pipeline is filled and healed, in a line. */
export function scheduleText({ cron, zone, last, lookback, heal }: KeptSchedule): string {
  const fields = Object.entries({ last, lookback, heal }).filter(([, value]) => value !== undefined);
  return [`at ${cron} (${zone})`, ...fields.map(([field, value]) => `${field} ${value}`)].join(', ');
}

/** A schedule for people: when it is due next, and how its last runs ended, below it. */
export function scheduleLines(seen: SeenSchedule, { colors }: Pick<Output, 'colors'>): string[] {
  const { paused, lastRun, lastHeal } = seen;
  const below = {
    ...(paused === undefined ? { next: nextText(seen) } : { paused }),
    ...(lastRun && { 'last run': runText(lastRun, seen) }),
    ...(lastHeal && { 'last heal': runText(lastHeal, seen) }),
  };
  return [
    `${colors.bold(seen.pipeline)}  ${scheduleText(seen)}, ${colors.dim(`by ${seen.keptBy}`)}`,
    ...Object.entries(below).map(([what, text]) => `    ${colors.dim(what.padEnd('last heal'.length))}  ${text}`),
  ];
}

export const SCHEDULE_COLUMNS: readonly Column[] = [
  'pipeline',
  'cron',
  'zone',
  'last',
  'lookback',
  'heal',
  'next',
  'last run',
  'last heal',
  'kept by',
].map((heading) => ({ heading }));

/** A schedule as a row of {@link SCHEDULE_COLUMNS}. */
export function scheduleRow(seen: SeenSchedule): string[] {
  const { pipeline, cron, zone, last, lookback, heal, paused, lastRun, lastHeal, keptBy } = seen;
  return [
    ...[pipeline, cron, zone, last === undefined ? '' : String(last)],
    lookback === undefined ? "the pipeline's" : String(lookback),
    heal === undefined ? '' : String(heal),
    paused === undefined ? nextText(seen) : `paused${paused === '' ? '' : `: ${paused}`}`,
    lastRun === undefined ? '' : runText(lastRun, seen),
    lastHeal === undefined ? '' : runText(lastHeal, seen),
    keptBy,
  ];
}

function nextText({ next, zone }: SeenSchedule): string {
  return next.map((time) => localTime(time, zone)).join(', ') || 'never';
}

function runText({ scheduledAt, ended, reason }: ScheduledRun, { zone }: SeenSchedule): string {
  const why = reason === undefined ? '' : `: ${oneLine(reason)}`;
  return `${localTime(scheduledAt, zone)} ${ended.replace('_', ' ')}${why}`;
}

/** `2024-03-01 02:15`, as clocks in the zone show it; in UTC, and said so, where this machine has no data of the zone. */
export function localTime(time: Date, zone: string): string {
  try {
    // Sweden writes dates as ISO does.
    const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
    return format.format(time);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  }
}
