import type { Grid } from './calendar.js';
import { formatKey, unitOfDay } from './key.js';
import { nextUnit, previousUnit, startOf, unitOf } from './window.js';
import { absentDays, wallTime } from './zone.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** The key of the partition that follows. Throws `KeyError` for a key that is none of the grid's, or its last one. */
export function nextKey(grid: Grid, key: string): string {
  return formatKey(grid.by, nextUnit(grid, unitOf(grid, key)));
}

/** The key of the partition before. Throws `KeyError` for a key that is none of the grid's, or its first one. */
export function previousKey(grid: Grid, key: string): string {
  return formatKey(grid.by, previousUnit(grid, unitOf(grid, key)));
}

/** The key of the partition `steps` before. Throws `KeyError` for a key that is none of the grid's, or before the first one. */
export function keyBefore(grid: Grid, key: string, steps: number): string {
  let number = unitOf(grid, key);
  for (let step = 0; step < steps; step++) number = previousUnit(grid, number);
  return formatKey(grid.by, number);
}

/**
 * The key of the partition whose window holds an instant, given as an ISO string with `Z` or an offset. Each instant is in
 * exactly one window. Throws `RangeError` where the string is no instant.
 */
export function keyAt(grid: Grid, instant: string): string {
  return formatKey(grid.by, unitAt(grid, instant));
}

/** The newest partition that has ended by an instant: its `end` is at or before it. */
export function newestFinished(grid: Grid, now: string): string {
  return formatKey(grid.by, previousUnit(grid, unitAt(grid, now)));
}

/** Keys from `from` to `to`, both included, in the calendar's order; none where `from` comes after `to`. */
export function* keysBetween(grid: Grid, from: string, to: string): Generator<string> {
  const last = unitOf(grid, to);
  for (let number = unitOf(grid, from); number <= last; number = nextUnit(grid, number)) {
    yield formatKey(grid.by, number);
  }
}

/** How many keys {@link keysBetween} gives, without walking them. */
export function countBetween(grid: Grid, from: string, to: string): number {
  const first = unitOf(grid, from);
  const last = unitOf(grid, to);
  if (first > last) return 0;
  const absent = grid.by === 'day' ? absentDays(grid.zone).filter((day) => day > first && day < last).length : 0;
  return last - first + 1 - absent;
}

function unitAt(grid: Grid, instant: string): number {
  const epochMs = /(Z|[+-]\d{2}(:?\d{2})?)$/.test(instant) ? Date.parse(instant) : NaN;
  if (Number.isNaN(epochMs))
    throw new RangeError(`${JSON.stringify(instant)} is no instant: expected one such as 2024-02-29T13:00:00Z`);
  if (grid.by === 'hour') return Math.floor(epochMs / HOUR_MS);
  // Where clocks went back over midnight, wall time reads the day before once more, so the window decides, not the reading.
  let number = unitOfDay(grid.by, Math.floor(wallTime(grid.zone, epochMs) / DAY_MS));
  while (startOf(grid, number) > epochMs) number = previousUnit(grid, number);
  for (let next = nextUnit(grid, number); startOf(grid, next) <= epochMs; next = nextUnit(grid, number)) number = next;
  return number;
}
