import assert from 'node:assert/strict';
import { PAGE_SIZE, pageOf } from '../../src/activities/next-keys.js';
import type { Grid } from '../../src/calendar/calendar.js';
import { keysBetween } from '../../src/calendar/range.js';
import { ORDERS, type Order } from '../../src/contract.js';

/** All pages of a range, one behind the other, as a backfill takes them. */
function paged(grid: Grid, from: string, to: string, order: Order): string[][] {
  const pages: string[][] = [];
  let key: string | undefined;
  for (let taken = 0; ;) {
    const page = pageOf(grid, { from, to, order }, { taken, key });
    if (page.length === 0) return pages;
    pages.push(page);
    taken += page.length;
    key = page.at(-1);
  }
}

describe('the pages of a range', () => {
  const ranges: [Grid, string, string][] = [
    [{ by: 'day', zone: 'UTC' }, '2020-01-01', '2023-12-31'],
    [{ by: 'day', zone: 'Pacific/Apia' }, '2011-12-28', '2012-01-02'],
    [{ by: 'hour', zone: 'UTC' }, '2024-02-28T00Z', '2024-03-25T23Z'],
    [{ by: 'month', zone: 'UTC' }, '2024-05', '2024-05'],
  ];
  for (const [grid, from, to] of ranges) {
    for (const order of ORDERS) {
      it(`hold each key once, ${order}: ${grid.by} ${from}..${to} in ${grid.zone}`, () => {
        const keys = [...keysBetween(grid, from, to)];
        const pages = paged(grid, from, to, order);
        assert.deepEqual(pages.flat(), order === 'oldest-first' ? keys : keys.reverse());
        assert.ok(pages.every((page) => page.length <= PAGE_SIZE));
      });
    }
  }

  it('go on after any key', () => {
    const grid = { by: 'day', zone: 'UTC' } as const;
    const range = { from: '2024-01-01', to: '2024-01-05' };
    assert.deepEqual(pageOf(grid, { ...range, order: 'oldest-first' }, { taken: 3, key: '2024-01-03' }), [
      '2024-01-04',
      '2024-01-05',
    ]);
    assert.deepEqual(pageOf(grid, { ...range, order: 'newest-first' }, { taken: 3, key: '2024-01-03' }), [
      '2024-01-02',
      '2024-01-01',
    ]);
  });
});
