import assert from 'node:assert/strict';
import { nothingDue } from '../../src/plan/scheduled.js';
import { keysOf, pipeline, plan } from './planning.js';

const NEW_YORK = 'America/New_York';
const inNewYork = { partition: { column: 'd', by: 'day', zone: NEW_YORK } } as const;
const at = (instant: string): Date => new Date(instant);

describe('`last` in a run of a schedule', () => {
  /** The days that a run fills that was due at a time, after one that was due before. */
  const days = async (asOf: string, before: string, fields: object = {}, settings: object = {}): Promise<string[]> =>
    keysOf(await plan({ last: 1, ...fields }, settings, { asOf: at(asOf), before: at(before) }));

  it('is the newest finished day where the time before was a day ago', async () => {
    assert.deepEqual(await days('2024-03-05T02:15:00Z', '2024-03-04T02:15:00Z'), ['2024-03-04']);
  });
  it('takes in every day that was finished since the time before', async () => {
    const since = ['2024-03-04', '2024-03-05', '2024-03-06'];
    assert.deepEqual(await days('2024-03-07T02:15:00Z', '2024-03-04T02:15:00Z'), since);
    assert.deepEqual(await days('2024-03-07T02:15:00Z', '2024-03-04T02:15:00Z', { last: 2 }), since);
    assert.deepEqual(await days('2024-03-07T02:15:00Z', '2024-03-04T02:15:00Z', { last: 4 }), ['2024-03-03', ...since]);
  });
  it('goes back by the lookback from there: on day 10 with 2, the days 8, 9 and 10', async () => {
    const day10 = ['2024-03-08', '2024-03-09', '2024-03-10'];
    const now = { now: at('2024-03-20T00:00:00Z') };
    const run = { asOf: at('2024-03-11T02:15:00Z'), before: at('2024-03-10T02:15:00Z'), ...now };
    assert.deepEqual(keysOf(await plan({ last: 1, lookback: 2 }, {}, run)), day10);
    assert.deepEqual(keysOf(await plan({ last: 1 }, { lookback: 2 }, run)), day10);
    const wider = { ...run, before: at('2024-03-09T02:15:00Z') };
    assert.deepEqual(keysOf(await plan({ last: 1, lookback: 2 }, {}, wider)), ['2024-03-07', ...day10]);
  });
  it('ends at the pipeline’s start', async () => {
    const settings = { start: '2024-03-05' };
    assert.deepEqual(await days('2024-03-06T02:15:00Z', '2024-03-01T02:15:00Z', { lookback: 9 }, settings), [
      '2024-03-05',
    ]);
  });
  it('fills it again where nothing was finished since', async () => {
    assert.deepEqual(await days('2024-03-05T14:15:00Z', '2024-03-05T02:15:00Z'), ['2024-03-04']);
  });
  it('misses no day where the clock skips 02:30, and doubles none where it shows 01:30 twice', async () => {
    const now = at('2024-11-30T00:00:00Z');
    const run = async (asOf: string, before: string): Promise<string[]> =>
      keysOf(await plan({ last: 1 }, inNewYork, { now, asOf: at(asOf), before: at(before) }));
    assert.deepEqual(await run('2024-03-09T07:30:00Z', '2024-03-08T07:30:00Z'), ['2024-03-08']);
    assert.deepEqual(await run('2024-03-11T06:30:00Z', '2024-03-09T07:30:00Z'), ['2024-03-09', '2024-03-10']);
    assert.deepEqual(await run('2024-11-03T05:30:00Z', '2024-11-02T05:30:00Z'), ['2024-11-02']);
    assert.deepEqual(await run('2024-11-04T06:30:00Z', '2024-11-03T06:30:00Z'), ['2024-11-03']);
  });
});

describe('a run of a schedule with nothing due', () => {
  const due = (
    now: string,
    before: string | undefined,
    settings: Parameters<typeof pipeline>[0] = inNewYork,
    fields: object = {},
    zone = NEW_YORK,
  ): string | undefined =>
    nothingDue(
      { last: 1, ...fields },
      pipeline(settings),
      at(now),
      before === undefined ? undefined : { at: at(before), zone },
    );
  const FIRST = '2024-11-03T05:30:00Z';
  const SECOND = '2024-11-03T06:30:00Z';

  it('is the second 01:30 of autumn', () => {
    assert.match(due(SECOND, FIRST) ?? '', /clock of America\/New_York went back.*2024-11-03T05:30:00\.000Z once more/);
  });
  it('is none of a schedule in a zone whose clock stays', () => {
    assert.equal(due(SECOND, FIRST, inNewYork, {}, 'UTC'), undefined);
  });
  it('is not where a partition was finished in between', () => {
    const hourly = { partition: { column: 'd', by: 'hour', zone: NEW_YORK }, start: '2023-01-01T00Z' } as const;
    assert.equal(due(SECOND, FIRST, hourly), undefined);
  });
  it('is not at another time of the same day', () => {
    assert.equal(due('2024-11-05T19:15:00Z', '2024-11-05T07:15:00Z'), undefined);
  });
  it('is none of a heal, nor of a request that takes in the unfinished one', () => {
    assert.equal(due(SECOND, FIRST, inNewYork, { only: ['missing'] }), undefined);
    assert.equal(due(SECOND, FIRST, inNewYork, { includeUnfinished: true }), undefined);
    assert.equal(due(SECOND, FIRST, inNewYork, { last: undefined, from: '2024-01-01' }), undefined);
  });
  it('is each before the first partition is finished, for a heal too', () => {
    const later = { ...inNewYork, start: '2024-11-03' };
    assert.match(due(SECOND, undefined, later) ?? '', /begins with 2024-11-03/);
    assert.match(due(SECOND, undefined, later, { only: ['missing'] }) ?? '', /begins with 2024-11-03/);
    assert.equal(due('2024-11-04T05:00:00Z', undefined, later), undefined);
  });
  it('is not told by a zone that is not known here', () => {
    assert.equal(due(SECOND, FIRST, inNewYork, {}, 'Mars/Olympus'), undefined);
  });
});
