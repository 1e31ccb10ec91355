import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Grid } from '../../src/calendar/calendar.js';
import { keysBetween, nextKey } from '../../src/calendar/range.js';
import { batchesOf } from '../../src/plan/batches.js';

const DAYS: Grid = { by: 'day', zone: 'UTC' };
const march = [...keysBetween(DAYS, '2024-02-27', '2024-03-03')];

describe('batches of keys', () => {
  it('are neighbours, and end where the list has a hole', () => {
    assert.deepEqual(
      batchesOf(DAYS, ['2024-02-28', '2024-02-29', '2024-03-01', '2024-03-03', '2024-03-04'], 10, false),
      [
        ['2024-02-28', '2024-02-29', '2024-03-01'],
        ['2024-03-03', '2024-03-04'],
      ],
    );
  });

  it('keep the order of the list, the newest first too', () => {
    assert.deepEqual(batchesOf(DAYS, [...march].reverse(), 4, false), [
      ['2024-03-03', '2024-03-02', '2024-03-01', '2024-02-29'],
      ['2024-02-28', '2024-02-27'],
    ]);
  });

  it('leave a last one to the next page that this one’s end may have cut, but not the only one', () => {
    assert.deepEqual(batchesOf(DAYS, march, 4, true), [march.slice(0, 4)]);
    assert.deepEqual(batchesOf(DAYS, march.slice(0, 4), 4, true), [march.slice(0, 4)]);
    assert.deepEqual(batchesOf(DAYS, march.slice(0, 3), 4, true), [march.slice(0, 3)]);
  });

  it('follow a calendar with days that never were', () => {
    // Samoa had no 2011-12-30.
    const apia: Grid = { by: 'day', zone: 'Pacific/Apia' };
    assert.deepEqual(batchesOf(apia, ['2011-12-29', '2011-12-31'], 10, false), [['2011-12-29', '2011-12-31']]);
  });

  it('hold every key once, in order, at most `size` of them, each next to the one before', () => {
    const grids: Grid[] = (['hour', 'day', 'week', 'month', 'quarter', 'year'] as const).map((by) => ({
      by,
      zone: 'UTC',
    }));
    const first = {
      hour: '2023-12-31T20Z',
      day: '2023-12-25',
      week: '2020-W50',
      month: '2023-10',
      quarter: '2023-Q3',
      year: '1999',
    };
    fc.assert(
      fc.property(
        fc.constantFrom(...grids),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 12 }),
        fc.boolean(),
        (grid, chosen, size, newestFirst) => {
          const keys: string[] = [];
          let key = first[grid.by];
          for (const take of chosen) {
            if (take) keys.push(key);
            key = nextKey(grid, key);
          }
          if (newestFirst) keys.reverse();
          const batches = batchesOf(grid, keys, size, false);
          assert.deepEqual(batches.flat(), keys);
          for (const [i, batch] of batches.entries()) {
            assert.ok(batch.length > 0 && batch.length <= size);
            const sorted = [...batch].sort();
            for (const [j, each] of sorted.slice(1).entries()) assert.equal(nextKey(grid, sorted[j] ?? ''), each);
            // None ends without a cause.
            const next = batches[i + 1]?.[0];
            const last = batch.at(-1) ?? '';
            if (batch.length < size && next !== undefined)
              assert.notEqual(nextKey(grid, last < next ? last : next), last < next ? next : last);
          }
        },
      ),
    );
  });
});
