import assert from 'node:assert/strict';
import fc from 'fast-check';
import { GRANULARITIES, type Grid } from '../../src/calendar/calendar.js';
import { countBetween, keyAt, keysBetween, newestFinished, nextKey, previousKey } from '../../src/calendar/range.js';
import { windowOf } from '../../src/calendar/window.js';

const zones = [
  'UTC',
  'America/New_York',
  'America/Sao_Paulo',
  'America/St_Johns',
  'America/Juneau',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Kwajalein',
  'Asia/Manila',
  'Asia/Kathmandu',
  'Africa/Monrovia',
];

const grids: fc.Arbitrary<Grid> = fc.record({ by: fc.constantFrom(...GRANULARITIES), zone: fc.constantFrom(...zones) });
const instants = fc
  .date({ min: new Date('1840-01-01T00:00:00Z'), max: new Date('2090-01-01T00:00:00Z'), noInvalidDate: true })
  .map((date) => date.toISOString());

describe('calendar: properties', () => {
  it('windows of neighbours meet exactly, in instants, dates and numbers', () => {
    fc.assert(
      fc.property(grids, instants, (grid, instant) => {
        const key = keyAt(grid, instant);
        const window = windowOf(grid, key);
        const next = windowOf(grid, nextKey(grid, key));
        assert.equal(window.end, next.start);
        assert.equal(window.endDate, next.date);
        assert.equal(window.localEnd, next.localStart);
        assert.ok(window.start < window.end);
        assert.ok(window.number < next.number);
        assert.equal(previousKey(grid, next.key), key);
      }),
      { numRuns: 500 },
    );
  });

  it('an instant lies in the window of its key, and keys and windows are each other’s inverse', () => {
    fc.assert(
      fc.property(grids, instants, (grid, instant) => {
        const key = keyAt(grid, instant);
        const window = windowOf(grid, key);
        assert.ok(Date.parse(window.start) <= Date.parse(instant) && Date.parse(instant) < Date.parse(window.end));
        assert.equal(window.key, key);
        assert.equal(keyAt(grid, window.start), key);
        assert.equal(newestFinished(grid, window.end), key);
        assert.equal(newestFinished(grid, instant), previousKey(grid, key));
      }),
      { numRuns: 500 },
    );
  });

  it('keys of one granularity compare in the order of time as plain strings', () => {
    fc.assert(
      fc.property(grids, instants, instants, (grid, one, other) => {
        const [a, b] = [keyAt(grid, one), keyAt(grid, other)];
        const order = Math.sign(Date.parse(windowOf(grid, a).start) - Date.parse(windowOf(grid, b).start));
        assert.equal(a < b ? -1 : a > b ? 1 : 0, order);
      }),
      { numRuns: 500 },
    );
  });

  it('a range has as many keys as it counts, each after the one before', () => {
    fc.assert(
      fc.property(grids, instants, fc.integer({ min: 0, max: 60 }), (grid, instant, steps) => {
        const from = keyAt(grid, instant);
        let to = from;
        for (let step = 0; step < steps; step++) to = nextKey(grid, to);
        const keys = [...keysBetween(grid, from, to)];
        assert.equal(keys.length, steps + 1);
        assert.equal(countBetween(grid, from, to), steps + 1);
        assert.deepEqual(keys, [...new Set(keys)].sort());
      }),
      { numRuns: 200 },
    );
  });
});
