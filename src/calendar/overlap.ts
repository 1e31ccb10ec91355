import type { Grid } from './calendar.js';
import { keyAt } from './range.js';
import { windowOf } from './window.js';

/** Keys from one to another of one grid, both included. */
interface Keys {
  readonly from: string;
  readonly to: string;
}

/**
 * The partitions of `grid` whose windows share an instant with those of `other` from one key to another, both ends included:
 * the month of a day, the days of a month, and across zones also those that are cut. Throws `KeyError` for keys that are none
 * of `other`, or where a year without partitions is reached.
 */
export function overlapping(grid: Grid, other: Grid, { from, to }: Keys): Keys {
  if (sameWindows(grid, other)) return { from, to };
  const { start } = windowOf(other, from);
  const { end } = windowOf(other, to);
  // Windows are half-open, and begin at whole seconds.
  return { from: keyAt(grid, start), to: keyAt(grid, new Date(Date.parse(end) - 1).toISOString()) };
}

function sameWindows(one: Grid, other: Grid): boolean {
  return one.by === other.by && (one.zone === other.zone || one.by === 'hour');
}
