import type { Grid } from '../calendar/calendar.js';
import { keysBetween, nextKey, previousKey } from '../calendar/range.js';
import type { Order } from '../contract.js';

/** A run of partitions without holes, both ends included, in the order it is worked through. */
export interface KeyRange {
  readonly from: string;
  readonly to: string;
  readonly order: Order;
}

/** The next keys of a range in its order, at most `limit`: those behind `after`, or the first ones. None at its end. */
export function keysFrom(
  grid: Grid,
  { from, to, order }: KeyRange,
  after: string | undefined,
  limit: number,
): string[] {
  const keys: string[] = [];
  if (limit <= 0 || after === (order === 'oldest-first' ? to : from)) return keys;
  if (order === 'oldest-first') {
    for (const key of keysBetween(grid, after === undefined ? from : nextKey(grid, after), to)) {
      keys.push(key);
      if (keys.length === limit) break;
    }
    return keys;
  }
  for (let key = after === undefined ? to : previousKey(grid, after); key >= from; key = previousKey(grid, key)) {
    keys.push(key);
    if (keys.length === limit || key === from) break;
  }
  return keys;
}
