import assert from 'node:assert/strict';
import type { Grid } from '../../src/calendar/calendar.js';
import {
  countBetween,
  keyAt,
  keyBefore,
  keysBetween,
  newestFinished,
  nextKey,
  previousKey,
} from '../../src/calendar/range.js';
import { isZone, lastClockChange } from '../../src/calendar/zone.js';

const days: Grid = { by: 'day', zone: 'UTC' };

describe('calendar: ranges', () => {
  it('has 371 days from 2023-02-26 to 2024-03-02, with 2024-02-29 and without 2023-02-29', () => {
    const keys = [...keysBetween(days, '2023-02-26', '2024-03-02')];
    assert.equal(keys.length, 371);
    assert.ok(keys.includes('2024-02-29'));
    assert.ok(!keys.includes('2023-02-29'));
    assert.equal(countBetween(days, '2023-02-26', '2024-03-02'), 371);
  });

  it('includes both ends, and is empty where they are the wrong way round', () => {
    assert.deepEqual([...keysBetween(days, '2024-01-01', '2024-01-01')], ['2024-01-01']);
    assert.deepEqual([...keysBetween(days, '2024-01-02', '2024-01-01')], []);
    assert.equal(countBetween(days, '2024-01-02', '2024-01-01'), 0);
  });

  it('leaves out a day that did not exist', () => {
    const apia: Grid = { by: 'day', zone: 'Pacific/Apia' };
    assert.equal(nextKey(apia, '2011-12-29'), '2011-12-31');
    assert.equal(previousKey(apia, '2011-12-31'), '2011-12-29');
    assert.equal(keyBefore(apia, '2012-01-01', 2), '2011-12-29');
    assert.equal(countBetween(apia, '2011-12-01', '2011-12-31'), 30);
    assert.throws(() => nextKey(apia, '2011-12-30'), /2011-12-29 and 2011-12-31/);
  });

  it('calls a partition finished from the instant of its end on', () => {
    assert.equal(newestFinished(days, '2024-03-04T23:59:59.999Z'), '2024-03-03');
    assert.equal(newestFinished(days, '2024-03-05T00:00:00Z'), '2024-03-04');
    const newYork: Grid = { by: 'day', zone: 'America/New_York' };
    assert.equal(newestFinished(newYork, '2024-11-04T04:59:59Z'), '2024-11-02');
    assert.equal(newestFinished(newYork, '2024-11-04T05:00:00Z'), '2024-11-03');
    assert.equal(newestFinished({ by: 'week', zone: 'UTC' }, '2021-01-04T00:00:00Z'), '2020-W53');
    assert.equal(newestFinished({ by: 'hour', zone: 'UTC' }, '2024-03-05T00:59:00Z'), '2024-03-04T23Z');
  });

  it('gives each instant one partition where clocks went back over midnight', () => {
    // At 00:01 on 1 November 2009 in St. John's the clock went back to 23:01 of the day before.
    const grid: Grid = { by: 'day', zone: 'America/St_Johns' };
    assert.equal(keyAt(grid, '2009-11-01T02:29:59Z'), '2009-10-31');
    assert.equal(keyAt(grid, '2009-11-01T02:30:30Z'), '2009-11-01');
    assert.equal(keyAt(grid, '2009-11-01T02:45:00Z'), '2009-11-01');
  });

  it('wants an instant, not a local time', () => {
    assert.throws(() => keyAt(days, '2024-03-05T00:00:00'), RangeError);
    assert.throws(() => keyAt(days, 'now'), RangeError);
  });

  it('refuses years whose instants would not have four digits', () => {
    assert.throws(() => nextKey(days, '9998-12-31'), /year from 1000 to 9998/);
    assert.throws(() => previousKey({ by: 'year', zone: 'UTC' }, '1000'), /year from 1000 to 9998/);
    assert.throws(() => keyAt(days, '+012024-01-01T00:00:00Z'), /year from 1000 to 9998/);
  });
});

describe('calendar: messages', () => {
  const messages: [Grid['by'], string, string][] = [
    ['day', '2024-02-29T13Z', '"2024-02-29T13Z" is an hour: expected a day such as 2024-02-29'],
    [
      'day',
      '2023-02-29',
      '"2023-02-29" names a date that no calendar has (that month ends on 2023-02-28): expected a day such as 2024-02-29',
    ],
    [
      'week',
      '2021-W53',
      '"2021-W53" names a week that no calendar has (2021 has 52 weeks): expected a week such as 2024-W09',
    ],
    ['month', '2024-13', '"2024-13" is not a month: expected a month such as 2024-02'],
    ['year', '', '"" is empty: expected a year such as 2024'],
  ];
  for (const [by, key, message] of messages) {
    it(`${JSON.stringify(key)} by ${by}`, () => {
      assert.throws(() => nextKey({ by, zone: 'UTC' }, key), { name: 'KeyError', message });
    });
  }
});

describe('calendar: zones', () => {
  it('knows names, and takes no offsets or abbreviations that servers read otherwise', () => {
    for (const zone of ['UTC', 'America/New_York', 'Asia/Kolkata', 'Etc/GMT+5']) assert.ok(isZone(zone), zone);
    for (const zone of ['', '+02:00', 'Mars/Olympus', 'IST']) assert.ok(!isZone(zone), zone);
  });

  it('knows when clocks are changed for the last time', () => {
    assert.equal(lastClockChange('UTC'), undefined);
    assert.equal(lastClockChange('Etc/GMT+5'), undefined);
    // https://en.wikipedia.org/wiki/Indian_Standard_Time: war time ended on 15 October 1945.
    assert.equal(lastClockChange('Asia/Kolkata'), Date.parse('1945-10-14T17:30:00Z'));
    assert.ok((lastClockChange('America/New_York') ?? 0) > Date.parse('2099-06-01T00:00:00Z'));
  });
});
