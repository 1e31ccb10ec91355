import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Grid, GRANULARITIES } from '../../src/calendar/calendar.js';
import { overlapping } from '../../src/calendar/overlap.js';
import { keyAt, nextKey, previousKey } from '../../src/calendar/range.js';
import { windowOf } from '../../src/calendar/window.js';

const utc = (by: Grid['by']): Grid => ({ by, zone: 'UTC' });
const newYork = (by: Grid['by']): Grid => ({ by, zone: 'America/New_York' });

/** What of `grid` overlaps one partition of `other`, as text. */
const overlap = (grid: Grid, other: Grid, key: string): string => {
  const { from, to } = overlapping(grid, other, { from: key, to: key });
  return from === to ? from : `${from}..${to}`;
};

describe('calendar: overlaps', () => {
  const cases: [string, Grid, Grid, string, string][] = [
    ['the days of a month', utc('day'), utc('month'), '2024-02', '2024-02-01..2024-02-29'],
    ['the month of a day', utc('month'), utc('day'), '2024-02-29', '2024-02'],
    ['the days of a quarter', utc('day'), utc('quarter'), '2024-Q1', '2024-01-01..2024-03-31'],
    ['the week of a day in a year before', utc('week'), utc('day'), '2021-01-03', '2020-W53'],
    [
      'the weeks of a month, with those that only reach into it',
      utc('week'),
      utc('month'),
      '2024-02',
      '2024-W05..2024-W09',
    ],
    ['the months of a week that is in two', utc('month'), utc('week'), '2024-W09', '2024-02..2024-03'],
    ['the hours of a day', utc('hour'), utc('day'), '2024-03-10', '2024-03-10T00Z..2024-03-10T23Z'],
    ['the 23 hours of a day in spring', utc('hour'), newYork('day'), '2024-03-10', '2024-03-10T05Z..2024-03-11T03Z'],
    ['the 25 hours of a day in autumn', utc('hour'), newYork('day'), '2024-11-03', '2024-11-03T04Z..2024-11-04T04Z'],
    ['the day of an hour in another zone', newYork('day'), utc('hour'), '2024-03-10T04Z', '2024-03-09'],
    ['the days of a day in another zone', utc('day'), newYork('day'), '2024-01-01', '2024-01-01..2024-01-02'],
    ['hours of hours, whatever their zone', newYork('hour'), utc('hour'), '2024-01-01T00Z', '2024-01-01T00Z'],
    [
      'a day of a zone that skipped the next',
      { by: 'day', zone: 'Pacific/Apia' },
      utc('day'),
      '2011-12-30',
      '2011-12-29..2011-12-31',
    ],
  ];
  for (const [what, grid, other, key, expected] of cases) {
    it(`finds ${what}: ${expected}`, () => assert.equal(overlap(grid, other, key), expected));
  }

  it('of several keys is what overlaps any of them', () => {
    assert.deepEqual(overlapping(utc('month'), utc('day'), { from: '2024-01-31', to: '2024-03-01' }), {
      from: '2024-01',
      to: '2024-03',
    });
  });

  it('has just the windows that share an instant, in any two calendars, and those of each other', () => {
    const grid = fc.record({
      by: fc.constantFrom(...GRANULARITIES),
      zone: fc.constantFrom('UTC', 'America/New_York', 'Pacific/Apia', 'Asia/Kathmandu', 'Europe/Dublin'),
    });
    const instant = fc.date({ min: new Date('1995-01-01'), max: new Date('2030-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(grid, grid, instant, (one, other, at) => {
        const key = keyAt(other, at.toISOString());
        const { start, end } = windowOf(other, key);
        const { from, to } = overlapping(one, other, { from: key, to: key });
        const [first, last] = [windowOf(one, from), windowOf(one, to)];
        assert.ok(first.start <= start && start < first.end, 'the first holds the beginning');
        assert.ok(last.start < end && end <= last.end, 'the last holds the end');
        assert.ok(windowOf(one, previousKey(one, from)).end <= start && windowOf(one, nextKey(one, to)).start >= end);
        for (const each of [from, to]) {
          const back = overlapping(other, one, { from: each, to: each });
          assert.ok(back.from <= key && key <= back.to, 'overlaps go both ways');
        }
      }),
      { numRuns: 300 },
    );
  });
});
