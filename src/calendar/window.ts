import type { Grid, Window } from './calendar.js';
import { firstDay, formatDate, formatKey, keyForm, parseKey } from './key.js';
import { KeyError } from './key-error.js';
import { absentDays, startOfDay, wallTime } from './zone.js';

const HOUR_MS = 3_600_000;

/**
 * The window that a key names in a grid. Windows of neighbours meet exactly: one's `end` is the next one's `start`.
 * Throws {@link KeyError} for a key of another form, and for a day that the grid's zone skipped.
 */
export function windowOf(grid: Grid, key: string): Window {
  const number = unitOf(grid, key);
  const next = nextUnit(grid, number);
  if (grid.by === 'hour') {
    const localStart = wallTime(grid.zone, number * HOUR_MS);
    const localEnd = wallTime(grid.zone, next * HOUR_MS);
    return {
      key,
      start: instant(number * HOUR_MS),
      end: instant(next * HOUR_MS),
      date: local(localStart).slice(0, 10),
      endDate: local(localEnd).slice(0, 10),
      localStart: local(localStart),
      localEnd: local(localEnd),
      number,
    };
  }
  const day = firstDay(grid.by, number);
  const endDay = firstDay(grid.by, next);
  return {
    key,
    start: instant(startOfDay(grid.zone, day)),
    end: instant(startOfDay(grid.zone, endDay)),
    date: formatDate(day),
    endDate: formatDate(endDay),
    localStart: `${formatDate(day)}T00:00:00`,
    localEnd: `${formatDate(endDay)}T00:00:00`,
    number,
  };
}

/** The unit a key names, as {@link parseKey} counts them. Throws {@link KeyError} also for a day the zone skipped. */
export function unitOf(grid: Grid, key: string): number {
  const number = parseKey(grid.by, key);
  if (isAbsent(grid, number)) {
    const before = formatKey(grid.by, previousUnit(grid, number));
    const after = formatKey(grid.by, nextUnit(grid, number));
    throw new KeyError(
      key,
      `did not exist in ${grid.zone}, whose clocks skipped that day`,
      `${keyForm(grid.by)}; the days beside it are ${before} and ${after}`,
    );
  }
  return number;
}

/** The unit after `number`, days that the zone skipped left out. */
export function nextUnit(grid: Grid, number: number): number {
  let next = number + 1;
  while (isAbsent(grid, next)) next++;
  return next;
}

/** The unit before `number`, days that the zone skipped left out. */
export function previousUnit(grid: Grid, number: number): number {
  let previous = number - 1;
  while (isAbsent(grid, previous)) previous--;
  return previous;
}

/** Milliseconds since the epoch at which a unit begins. */
export function startOf(grid: Grid, number: number): number {
  return grid.by === 'hour' ? number * HOUR_MS : startOfDay(grid.zone, firstDay(grid.by, number));
}

function isAbsent(grid: Grid, number: number): boolean {
  return grid.by === 'day' && absentDays(grid.zone).includes(number);
}

function instant(epochMs: number): string {
  return `${local(epochMs)}Z`;
}

function local(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 19);
}
