import assert from 'node:assert/strict';
import type { Granularity } from '../../src/calendar/calendar.js';
import { keysOf, plan, refused } from './planning.js';

const NEW_YORK = 'America/New_York';

const of = (by: Granularity, start: string | undefined, zone = 'UTC') =>
  ({ partition: { column: 'd', by, zone }, start }) as const;

/** What is asked of a pipeline at 2024-03-10T12:00Z, a Sunday: by each unit. */
const UNITS: readonly {
  readonly by: Granularity;
  readonly start: string;
  readonly from: string;
  readonly to: string;
  readonly keys: readonly string[];
  readonly notes: readonly RegExp[];
  /** The unit that is not over, and when it will be. */
  readonly current: string;
  readonly newest: string;
  readonly lastTwo: readonly string[];
  /** A key of another unit, and how it is refused. */
  readonly wrong: readonly [key: string, message: RegExp];
}[] = [
  {
    by: 'hour',
    start: '2024-03-09T22Z',
    from: '2024-03-09T20Z',
    to: '2024-03-10T13Z',
    keys: Array.from({ length: 14 }, (_, i) => new Date(Date.UTC(2024, 2, 9, 22 + i)).toISOString().slice(0, 13) + 'Z'),
    notes: [
      /^2 partitions are left out: from 2024-03-09T20Z to 2024-03-09T21Z, which are before the pipeline's start 2024-03-09T22Z\.$/,
      /^1 partition is left out: 2024-03-10T12Z, which is unfinished until 2024-03-10T13:00:00Z\.$/,
      /^1 partition is left out: 2024-03-10T13Z, which is in the future\.$/,
    ],
    current: '2024-03-10T12Z',
    newest: '2024-03-10T11Z',
    lastTwo: ['2024-03-10T10Z', '2024-03-10T11Z'],
    wrong: ['2024-03-10', /"2024-03-10", which is a day; sales is by [a-z]+: expected an hour such as 2024-02-29T13Z/],
  },
  {
    by: 'week',
    start: '2024-W05',
    from: '2024-W04',
    to: '2024-W12',
    keys: ['2024-W05', '2024-W06', '2024-W07', '2024-W08', '2024-W09'],
    notes: [
      /2024-W04, which is before the pipeline's start 2024-W05\.$/,
      /2024-W10, which is unfinished until 2024-03-11T00:00:00Z\.$/,
      /from 2024-W11 to 2024-W12, which are in the future\.$/,
    ],
    current: '2024-W10',
    newest: '2024-W09',
    lastTwo: ['2024-W08', '2024-W09'],
    wrong: ['2021-W53', /names a week that no calendar has \(2021 has 52 weeks\)/],
  },
  {
    by: 'month',
    start: '2023-11',
    from: '2023-10',
    to: '2024-04',
    keys: ['2023-11', '2023-12', '2024-01', '2024-02'],
    notes: [
      /2023-10, which is before/,
      /2024-03, which is unfinished until 2024-04-01T00:00:00Z/,
      /2024-04, which is in the future/,
    ],
    current: '2024-03',
    newest: '2024-02',
    lastTwo: ['2024-01', '2024-02'],
    wrong: ['2024-Q1', /"2024-Q1", which is a quarter; sales is by [a-z]+: expected a month/],
  },
  {
    by: 'quarter',
    start: '2023-Q1',
    from: '2022-Q3',
    to: '2024-Q3',
    keys: ['2023-Q1', '2023-Q2', '2023-Q3', '2023-Q4'],
    notes: [
      /from 2022-Q3 to 2022-Q4, which are before/,
      /2024-Q1, which is unfinished until 2024-04-01/,
      /from 2024-Q2 to 2024-Q3, which are in the future/,
    ],
    current: '2024-Q1',
    newest: '2023-Q4',
    lastTwo: ['2023-Q3', '2023-Q4'],
    wrong: ['2024', /"2024", which is a year; sales is by [a-z]+: expected a quarter/],
  },
  {
    by: 'year',
    start: '2020',
    from: '2019',
    to: '2025',
    keys: ['2020', '2021', '2022', '2023'],
    notes: [/2019, which is before/, /2024, which is unfinished until 2025-01-01/, /2025, which is in the future/],
    current: '2024',
    newest: '2023',
    lastTwo: ['2022', '2023'],
    wrong: ['2024-03', /"2024-03", which is a month; sales is by [a-z]+: expected a year/],
  },
];

describe('plan: other units than days', () => {
  for (const { by, start, from, to, keys, notes, current, newest, lastTwo, wrong } of UNITS) {
    describe(`by ${by}`, () => {
      const pipeline = of(by, start);

      it('a range has both ends, less what is before the start, unfinished or in the future, which is said', async () => {
        const planned = await plan({ from, to }, pipeline);
        assert.deepEqual(keysOf(planned), keys);
        assert.equal(planned.notes.length, notes.length);
        for (const [i, note] of notes.entries()) assert.match(planned.notes[i] ?? '', note);
        assert.deepEqual(keysOf(await plan({ from: newest, to: newest }, pipeline)), [newest]);
      });

      it('keys that do not touch stay apart', async () => {
        const apart = [keys[0], keys[2], newest];
        const planned = await plan({ keys: apart.filter((key) => key !== undefined).reverse() }, pipeline);
        assert.deepEqual(keysOf(planned), apart);
        assert.equal(planned.range, undefined);
      });

      it('the newest finished ones are counted back from; the unfinished one is taken in where asked', async () => {
        assert.deepEqual(keysOf(await plan({ last: 2 }, pipeline)), lastTwo);
        assert.equal((await plan({ from: newest }, pipeline)).last, newest);
        assert.equal((await plan({ from: newest, includeUnfinished: true }, pipeline)).last, current);
        assert.deepEqual(keysOf(await plan({ only: ['missing'] }, pipeline)), keys);
      });

      it('a range the wrong way round, and a key of another unit, are refused', async () => {
        await refused(
          plan({ from: newest, to: keys[0] }, pipeline),
          new RegExp(`${newest}.*${keys[0]}|${keys[0]}.*${newest}`),
        );
        await refused(plan({ from: wrong[0] }, pipeline), wrong[1]);
        await refused(plan({ keys: [newest, wrong[0]] }, pipeline), wrong[1]);
        await refused(plan({ from: current }, pipeline), new RegExp(`nearest partition is ${newest}`));
      });
    });
  }

  it('units end when the zone’s clock says so', async () => {
    const at = async (by: Granularity, now: string) =>
      keysOf(await plan({ last: 1 }, of(by, undefined, NEW_YORK), { now: new Date(now) }));
    // The Monday after New York's clock has gone forward begins at 04:00 UTC.
    assert.deepEqual(await at('week', '2024-03-11T03:59:59Z'), ['2024-W09']);
    assert.deepEqual(await at('week', '2024-03-11T04:00:00Z'), ['2024-W10']);
    assert.deepEqual(await at('month', '2024-03-01T04:59:59Z'), ['2024-01']);
    assert.deepEqual(await at('month', '2024-03-01T05:00:00Z'), ['2024-02']);
    assert.deepEqual(await at('quarter', '2024-04-01T04:00:00Z'), ['2024-Q1']);
    assert.deepEqual(await at('year', '2024-01-01T04:59:59Z'), ['2022']);
    // Hours are UTC's.
    assert.deepEqual(await at('hour', '2024-03-10T07:00:00Z'), ['2024-03-10T06Z']);
  });

  it('hours of both of New York’s clock changes are each there', async () => {
    const pipeline = of('hour', undefined, NEW_YORK);
    assert.equal((await plan({ from: '2023-11-05T04Z', to: '2023-11-06T04Z' }, pipeline)).entries.length, 25);
    assert.equal((await plan({ from: '2023-03-12T05Z', to: '2023-03-13T03Z' }, pipeline)).entries.length, 23);
  });
});
