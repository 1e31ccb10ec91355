import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Grid } from '../../src/calendar/calendar.js';
import { keyAt, keysBetween } from '../../src/calendar/range.js';
import { ORDERS } from '../../src/contract.js';
import { keysFrom } from '../../src/plan/keys-from.js';

const apia: Grid = { by: 'day', zone: 'Pacific/Apia' };
const range = { from: '2011-12-28', to: '2012-01-02' } as const;

describe('keys of a range, page by page', () => {
  it("begins at the range's end that its order names", () => {
    assert.deepEqual(keysFrom(apia, { ...range, order: 'oldest-first' }, undefined, 3), [
      '2011-12-28',
      '2011-12-29',
      '2011-12-31',
    ]);
    assert.deepEqual(keysFrom(apia, { ...range, order: 'newest-first' }, undefined, 4), [
      '2012-01-02',
      '2012-01-01',
      '2011-12-31',
      '2011-12-29',
    ]);
  });

  it('goes on behind a key, and is through at the last', () => {
    assert.deepEqual(keysFrom(apia, { ...range, order: 'oldest-first' }, '2011-12-29', 2), [
      '2011-12-31',
      '2012-01-01',
    ]);
    assert.deepEqual(keysFrom(apia, { ...range, order: 'oldest-first' }, '2012-01-02', 2), []);
    assert.deepEqual(keysFrom(apia, { ...range, order: 'newest-first' }, '2011-12-28', 2), []);
    assert.deepEqual(keysFrom(apia, { ...range, order: 'oldest-first' }, undefined, 0), []);
  });

  it('is not led out of the calendar by its ends', () => {
    const years: Grid = { by: 'year', zone: 'UTC' };
    assert.deepEqual(keysFrom(years, { from: '1000', to: '1001', order: 'newest-first' }, undefined, 5), [
      '1001',
      '1000',
    ]);
    assert.deepEqual(keysFrom(years, { from: '9997', to: '9998', order: 'oldest-first' }, '9997', 5), ['9998']);
  });

  it('gives each key of the range once, in order, whatever the page', () => {
    const instants = fc.date({ min: new Date('1990-01-01'), max: new Date('2012-06-01'), noInvalidDate: true });
    const size = fc.integer({ min: 1, max: 50 });
    fc.assert(
      fc.property(
        instants,
        fc.integer({ min: 0, max: 300 }),
        fc.constantFrom(...ORDERS),
        size,
        (start, days, order, limit) => {
          const from = keyAt(apia, start.toISOString());
          const to = keyAt(apia, new Date(start.getTime() + days * 86_400_000).toISOString());
          const expected = [...keysBetween(apia, from, to)];
          if (order === 'newest-first') expected.reverse();
          const seen: string[] = [];
          for (;;) {
            const page = keysFrom(apia, { from, to, order }, seen.at(-1), limit);
            if (page.length === 0) break;
            assert.ok(page.length <= limit);
            seen.push(...page);
          }
          assert.deepEqual(seen, expected);
        },
      ),
    );
  });
});
