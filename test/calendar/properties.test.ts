import assert from 'node:assert/strict';
import fc from 'fast-check';
import { GRANULARITIES, type Grid } from '../../src/calendar/calendar.js';
import { KeyError } from '../../src/calendar/key-error.js';
import { formatDate } from '../../src/calendar/key.js';
import { countBetween, keyAt, keysBetween, newestFinished, nextKey, previousKey } from '../../src/calendar/range.js';
import { windowOf } from '../../src/calendar/window.js';
import { absentDays } from '../../src/calendar/zone.js';
import { seed } from '../support/seed.js';
import { someZones } from '../support/zones.js';

const RANDOM_ZONES = 20;

describe('calendar: properties', () => {
  const SEED = seed();
  const zones = someZones(RANDOM_ZONES, SEED);
  const grids: fc.Arbitrary<Grid> = fc.record({
    by: fc.constantFrom(...GRANULARITIES),
    zone: fc.constantFrom(...zones),
  });
  const instants = fc
    .date({ min: new Date('1840-01-01T00:00:00Z'), max: new Date('2090-01-01T00:00:00Z'), noInvalidDate: true })
    .map((date) => date.toISOString());

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
      { numRuns: 500, seed: SEED },
    );
  });

  it('windows of a range tile it: from the first one’s start to the last one’s end, no instant in two, none in neither', () => {
    fc.assert(
      fc.property(grids, instants, fc.integer({ min: 1, max: 40 }), (grid, instant, steps) => {
        const keys = [keyAt(grid, instant)];
        for (let step = 0; step < steps; step++) keys.push(nextKey(grid, keys.at(-1) ?? ''));
        const windows = keys.map((key) => windowOf(grid, key));
        const [first, last] = [windows[0], windows.at(-1)];
        assert.ok(first && last);
        const length = windows.reduce((sum, { start, end }) => sum + Date.parse(end) - Date.parse(start), 0);
        assert.equal(length, Date.parse(last.end) - Date.parse(first.start));
        for (const [i, window] of windows.slice(1).entries()) assert.equal(windows[i]?.end, window.start);
      }),
      { numRuns: 200, seed: SEED },
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
        assert.equal(keyAt(grid, new Date(Date.parse(window.end) - 1).toISOString()), key);
        assert.equal(newestFinished(grid, window.end), key);
        assert.equal(newestFinished(grid, instant), previousKey(grid, key));
      }),
      { numRuns: 500, seed: SEED },
    );
  });

  it('a window begins at the first instant of its date, as Intl reads the zone’s clock', () => {
    fc.assert(
      fc.property(grids, instants, (grid, instant) => {
        if (grid.by === 'hour') return;
        const { start, date } = windowOf(grid, keyAt(grid, instant));
        assert.equal(localDate(grid.zone, Date.parse(start)), date);
        assert.ok(localDate(grid.zone, Date.parse(start) - 1) < date);
      }),
      { numRuns: 300, seed: SEED },
    );
  });

  it('keys of one granularity compare in the order of time as plain strings', () => {
    fc.assert(
      fc.property(grids, instants, instants, (grid, one, other) => {
        const [a, b] = [keyAt(grid, one), keyAt(grid, other)];
        const order = Math.sign(Date.parse(windowOf(grid, a).start) - Date.parse(windowOf(grid, b).start));
        assert.equal(a < b ? -1 : a > b ? 1 : 0, order);
      }),
      { numRuns: 500, seed: SEED },
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
      { numRuns: 200, seed: SEED },
    );
  });

  it('a day that a zone skipped is no key, lies in no range, and those beside it meet; other units take no harm', () => {
    const skipped = zones.flatMap((zone) => absentDays(zone).map((day) => ({ zone, day })));
    assert.ok(skipped.length >= 3, 'Apia, Kwajalein and Manila have one each');
    for (const { zone, day } of skipped) {
      const [before, absent, after] = [day - 1, day, day + 1].map(formatDate);
      assert.ok(before && absent && after);
      const grid: Grid = { by: 'day', zone };
      assert.throws(() => windowOf(grid, absent), KeyError);
      assert.deepEqual([...keysBetween(grid, before, after)], [before, after]);
      assert.equal(countBetween(grid, before, after), 2);
      assert.equal(windowOf(grid, before).end, windowOf(grid, after).start);
      for (const by of GRANULARITIES) {
        if (by === 'day') continue;
        const key = keyAt({ by, zone }, windowOf(grid, after).start);
        assert.equal(windowOf({ by, zone }, key).end, windowOf({ by, zone }, nextKey({ by, zone }, key)).start);
      }
    }
  });
});

/** A date that the zone's clock shows, by the engine's own formatter. */
function localDate(zone: string, epochMs: number): string {
  // Year, month and day as ISO writes them; Canada's English does so.
  const parts = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' });
  return parts.format(epochMs);
}
