import type { Grid } from '../calendar/calendar.js';
import { nextKey } from '../calendar/range.js';

/**
 * Puts keys that follow each other in the calendar, forward or backward, together, at most `size` at once and in their order.
 * Where `more` keys come behind these, a last batch that they might make longer is left out, unless it is the only one.
 */
export function batchesOf(grid: Grid, keys: readonly string[], size: number, more: boolean): string[][] {
  const batches: string[][] = [];
  for (const key of keys) {
    const batch = batches.at(-1);
    const last = batch?.at(-1);
    if (batch && last !== undefined && batch.length < size && areNeighbours(grid, last, key)) batch.push(key);
    else batches.push([key]);
  }
  if (more && batches.length > 1 && (batches.at(-1)?.length ?? size) < size) batches.pop();
  return batches;
}

function areNeighbours(grid: Grid, one: string, other: string): boolean {
  return one < other ? nextKey(grid, one) === other : other < one && nextKey(grid, other) === one;
}
