import type { Grid } from '../calendar/calendar.js';
import { keysBetween, nextKey, previousKey } from '../calendar/range.js';
import { runKeys } from '../warehouse/backfills.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { Cursor, KeyRange, NextKeysRequest } from './messages.js';
import { withPlannedDatabase } from './planned-database.js';
import { plannedPipeline } from './served-pipeline.js';

/** Keys in one answer: about 10 kB. */
export const PAGE_SIZE = 500;

/** The next keys of a backfill after its cursor, in the asked order; none when it is through. Writes nothing. */
export function nextKeys(deps: ActivityDeps): (request: NextKeysRequest) => Promise<readonly string[]> {
  return answering('attempts', async ({ pipeline: name, ledger, range, list = '', cursor }) => {
    const pipeline = plannedPipeline(deps, name);
    if (range) return pageOf(pipeline.partition, range, cursor);
    return withPlannedDatabase(deps, pipeline, ledger, (database) => runKeys(database, list, cursor.taken, PAGE_SIZE));
  });
}

/** A page of a range's keys after the cursor. */
export function pageOf(grid: Grid, { from, to, order }: KeyRange, { key: last }: Cursor): string[] {
  const page: string[] = [];
  if (order === 'oldest-first') {
    const first = last === undefined ? from : nextKey(grid, last);
    if (first > to) return page;
    for (const key of keysBetween(grid, first, to)) {
      page.push(key);
      if (page.length === PAGE_SIZE) break;
    }
  } else {
    let key = last === undefined ? to : previousKey(grid, last);
    for (; key >= from && page.length < PAGE_SIZE; key = previousKey(grid, key)) page.push(key);
  }
  return page;
}
