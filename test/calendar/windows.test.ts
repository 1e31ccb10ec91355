import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Granularity, Grid } from '../../src/calendar/calendar.js';
import { KeyError } from '../../src/calendar/key-error.js';
import { countBetween, keyAt, keysBetween, nextKey, previousKey } from '../../src/calendar/range.js';
import { windowOf } from '../../src/calendar/window.js';

/** Windows worked out minute by minute from zone data, by a program that shares nothing with this one. */
interface Ranged {
  by: Granularity;
  zone: string;
  from: string;
  to: string;
  count: number;
  absent?: string[];
  windows: { key: string; start: string; end: string; hours: number }[];
}
interface Refused {
  by: Granularity;
  zone?: string;
  refused: string[];
}

const entries = JSON.parse(readFileSync(new URL('../fixtures/calendar.json', import.meta.url), 'utf8')) as (
  Ranged | Refused
)[];

describe('calendar: windows worked out independently', () => {
  it('has both kinds of entries', () => {
    assert.equal(entries.filter((entry) => 'windows' in entry).length, 23);
    assert.equal(entries.filter((entry) => 'refused' in entry).length, 7);
  });

  for (const entry of entries) {
    const grid: Grid = { by: entry.by, zone: entry.zone ?? 'UTC' };
    if ('refused' in entry) {
      for (const key of entry.refused) {
        it(`refuses ${JSON.stringify(key)} as a key by ${grid.by} in ${grid.zone}`, () => {
          assert.throws(() => windowOf(grid, key), KeyError);
        });
      }
      continue;
    }
    it(`${entry.from}..${entry.to} by ${grid.by} in ${grid.zone}`, () => {
      const keys = [...keysBetween(grid, entry.from, entry.to)];
      assert.deepEqual(
        keys,
        entry.windows.map((window) => window.key),
      );
      assert.equal(countBetween(grid, entry.from, entry.to), entry.count);
      for (const expected of entry.windows) {
        const window = windowOf(grid, expected.key);
        assert.deepEqual(
          { start: window.start, end: window.end, hours: hoursOf(window) },
          { start: expected.start, end: expected.end, hours: expected.hours },
        );
        assert.equal(keyAt(grid, window.start), expected.key);
        assert.equal(keyAt(grid, before(window.end)), expected.key);
      }
      for (const absent of entry.absent ?? []) {
        assert.ok(!keys.includes(absent));
        assert.throws(() => windowOf(grid, absent), /did not exist in /);
      }
      for (const [index, key] of keys.slice(1).entries()) {
        assert.equal(nextKey(grid, keys[index] ?? ''), key);
        assert.equal(previousKey(grid, key), keys[index]);
      }
    });
  }
});

describe('calendar: the parts of a window', () => {
  it('names local dates and wall time, which meet where the zone skipped a day', () => {
    const grid: Grid = { by: 'day', zone: 'Pacific/Apia' };
    assert.deepEqual(windowOf(grid, '2011-12-29'), {
      key: '2011-12-29',
      start: '2011-12-29T10:00:00Z',
      end: '2011-12-30T10:00:00Z',
      date: '2011-12-29',
      endDate: '2011-12-31',
      localStart: '2011-12-29T00:00:00',
      localEnd: '2011-12-31T00:00:00',
      number: 15337,
    });
    assert.equal(windowOf(grid, '2011-12-31').start, '2011-12-30T10:00:00Z');
  });

  it('counts hours in UTC and reads them on the wall of the zone', () => {
    assert.deepEqual(windowOf({ by: 'hour', zone: 'Asia/Kolkata' }, '2024-03-05T18Z'), {
      key: '2024-03-05T18Z',
      start: '2024-03-05T18:00:00Z',
      end: '2024-03-05T19:00:00Z',
      date: '2024-03-05',
      endDate: '2024-03-06',
      localStart: '2024-03-05T23:30:00',
      localEnd: '2024-03-06T00:30:00',
      number: 474906,
    });
  });

  it('keeps to wall time where midnight itself was skipped', () => {
    const window = windowOf({ by: 'day', zone: 'America/Sao_Paulo' }, '2018-11-04');
    assert.deepEqual([window.date, window.localStart], ['2018-11-04', '2018-11-04T00:00:00']);
  });
});

function hoursOf(window: { start: string; end: string }): number {
  return (Date.parse(window.end) - Date.parse(window.start)) / 3_600_000;
}

function before(instant: string): string {
  return new Date(Date.parse(instant) - 1).toISOString();
}
