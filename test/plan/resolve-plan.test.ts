import assert from 'node:assert/strict';
import { keysOf, plan, refused, type WholePlan } from './planning.js';

describe('plan: ranges', () => {
  it('includes both ends', async () => {
    assert.deepEqual(keysOf(await plan({ from: '2024-03-01', to: '2024-03-01' })), ['2024-03-01']);
    assert.deepEqual(keysOf(await plan({ from: '2024-03-01', to: '2024-03-03' })), [
      '2024-03-01',
      '2024-03-02',
      '2024-03-03',
    ]);
  });

  it('has 371 days from 2023-02-26 to 2024-03-02', async () => {
    const { entries, range, first, last, notes } = await plan({ from: '2023-02-26', to: '2024-03-02' });
    assert.equal(entries.length, 371);
    assert.ok(entries.some(({ key }) => key === '2024-02-29'));
    assert.ok(!entries.some(({ key }) => key === '2023-02-29'));
    assert.deepEqual(
      { range, first, last, notes },
      {
        range: { from: '2023-02-26', to: '2024-03-02' },
        first: '2023-02-26',
        last: '2024-03-02',
        notes: [],
      },
    );
  });

  it('goes to the newest finished one where no end is named', async () => {
    const { last, notes } = await plan({ from: '2024-03-05' });
    assert.deepEqual({ last, notes }, { last: '2024-03-09', notes: [] });
  });

  it('leaves out, counts and says what is unfinished, in the future or before the start', async () => {
    const today = await plan({ from: '2024-03-08', to: '2024-03-10' });
    assert.deepEqual(keysOf(today), ['2024-03-08', '2024-03-09']);
    assert.deepEqual(today.notes, [
      '1 partition is left out: 2024-03-10, which is unfinished until 2024-03-11T00:00:00Z.',
    ]);
    const more = await plan({ from: '2022-12-30', to: '2024-03-13' });
    assert.equal(more.first, '2023-01-01');
    assert.deepEqual(more.notes, [
      "2 partitions are left out: from 2022-12-30 to 2022-12-31, which are before the pipeline's start 2023-01-01.",
      '1 partition is left out: 2024-03-10, which is unfinished until 2024-03-11T00:00:00Z.',
      '3 partitions are left out: from 2024-03-11 to 2024-03-13, which are in the future.',
    ]);
  });

  it('takes in the unfinished one where that is asked for, never the future', async () => {
    const { last, notes } = await plan({ from: '2024-03-09', to: '2024-03-12', includeUnfinished: true });
    assert.equal(last, '2024-03-10');
    assert.deepEqual(notes, ['2 partitions are left out: from 2024-03-11 to 2024-03-12, which are in the future.']);
    assert.equal((await plan({ from: '2024-03-09', includeUnfinished: true })).last, '2024-03-10');
  });

  it('never calls a day complete before it is over in the zone', async () => {
    const newYork = { partition: { column: 'd', by: 'day', zone: 'America/New_York' } } as const;
    const at = (now: string): Promise<WholePlan> => plan({ last: 1 }, newYork, { now: new Date(now) });
    assert.deepEqual(keysOf(await at('2024-03-10T04:59:59Z')), ['2024-03-08']);
    assert.deepEqual(keysOf(await at('2024-03-10T05:00:00Z')), ['2024-03-09']);
    assert.deepEqual(keysOf(await at('2024-03-11T03:59:59Z')), ['2024-03-09']);
    assert.deepEqual(keysOf(await at('2024-03-11T04:00:00Z')), ['2024-03-10']);
  });

  it('passes over a day that did not exist', async () => {
    const apia = { partition: { column: 'd', by: 'day', zone: 'Pacific/Apia' }, start: undefined } as const;
    const { range, entries } = await plan({ from: '2011-12-28', to: '2012-01-01' }, apia);
    assert.equal(entries.length, 4);
    assert.deepEqual(range, { from: '2011-12-28', to: '2012-01-01' });
    await refused(plan({ from: '2011-12-30' }, apia), /from is "2011-12-30", which did not exist in Pacific\/Apia/);
  });
});

describe('plan: lists, last and all', () => {
  it('sorts keys into the calendar, each once, and knows a list without holes', async () => {
    const holes = await plan({
      keys: ['2024-03-05', '2024-03-01..2024-03-02', '2024-03-02..2024-03-03', '2024-03-05', '2024-02-28'],
    });
    assert.deepEqual(keysOf(holes), ['2024-02-28', '2024-03-01', '2024-03-02', '2024-03-03', '2024-03-05']);
    assert.equal(holes.range, undefined);
    const whole = await plan({ keys: ['2024-03-02', '2024-03-01'] });
    assert.deepEqual(whole.range, { from: '2024-03-01', to: '2024-03-02' });
  });

  it('counts what it leaves out of a list once', async () => {
    const { notes } = await plan({
      keys: ['2024-03-09', '2024-03-11..2024-03-12', '2024-03-12..2024-03-13', '2024-03-10'],
    });
    assert.deepEqual(notes, [
      '1 partition is left out: 2024-03-10, which is unfinished until 2024-03-11T00:00:00Z.',
      '3 partitions are left out: from 2024-03-11 to 2024-03-13, which are in the future.',
    ]);
  });

  it('takes a list of 10,000 entries', async () => {
    const keys = Array.from({ length: 10_000 }, (_, index) => (index % 2 ? '2024-03-01' : '2023-01-01..2023-12-31'));
    assert.equal((await plan({ keys })).entries.length, 366);
  });

  it('widens last by lookback, and nothing else', async () => {
    const times = { now: new Date('2024-03-11T08:00:00Z') };
    assert.deepEqual(keysOf(await plan({ last: 1 }, { lookback: 2 }, times)), [
      '2024-03-08',
      '2024-03-09',
      '2024-03-10',
    ]);
    assert.deepEqual(keysOf(await plan({ from: '2024-03-10' }, { lookback: 2 }, times)), ['2024-03-10']);
    assert.deepEqual(keysOf(await plan({ keys: ['2024-03-10'] }, { lookback: 2 }, times)), ['2024-03-10']);
  });

  it("takes last as of a schedule's time, which cannot lie in the future", async () => {
    const asOf = new Date('2024-03-04T01:00:00Z');
    assert.deepEqual(keysOf(await plan({ last: 2 }, {}, { asOf })), ['2024-03-02', '2024-03-03']);
    assert.deepEqual(keysOf(await plan({ last: 1 }, {}, { asOf: new Date('2030-01-01T00:00:00Z') })), ['2024-03-09']);
    assert.equal((await plan({ from: '2024-03-01' }, {}, { asOf })).last, '2024-03-09');
  });

  it('stops last at the start', async () => {
    const { entries, first, notes } = await plan({ last: 1_000_000 });
    assert.deepEqual({ count: entries.length, first, notes }, { count: 434, first: '2023-01-01', notes: [] });
    await refused(
      plan({ last: 1_000_000 }, { start: undefined }),
      /last goes back to years before 1000, which have no partitions: expected fewer/,
    );
  });

  it('means all from the start where only is given alone', async () => {
    const { first, last, counts } = await plan({ only: ['missing'] });
    assert.deepEqual(
      { first, last, missing: counts.missing },
      { first: '2023-01-01', last: '2024-03-09', missing: 429 },
    );
    await refused(
      plan({ only: ['missing'] }, { start: undefined }),
      /sales has no start, so it has no first partition: expected from/,
    );
  });

  it('goes through the newest first where that is asked for', async () => {
    const { entries, first, last, range } = await plan({ from: '2024-03-01', to: '2024-03-03', order: 'newest-first' });
    assert.deepEqual(
      entries.map(({ key }) => key),
      ['2024-03-03', '2024-03-02', '2024-03-01'],
    );
    assert.deepEqual(
      { first, last, range },
      { first: '2024-03-01', last: '2024-03-03', range: { from: '2024-03-01', to: '2024-03-03' } },
    );
  });
});

describe('plan: states', () => {
  const range = { from: '2024-03-01', to: '2024-03-06' };

  it('gives each partition its reason, and counts them', async () => {
    const { entries, counts } = await plan(range);
    assert.deepEqual(entries, [
      { key: '2024-03-01', reason: 'filled' },
      { key: '2024-03-02', reason: 'filled' },
      { key: '2024-03-03', reason: 'outdated' },
      { key: '2024-03-04', reason: 'failed' },
      { key: '2024-03-05', reason: 'failed' },
      { key: '2024-03-06', reason: 'missing' },
    ]);
    assert.deepEqual(counts, { failed: 2, missing: 1, outdated: 1, changed: 0, filled: 2 });
  });

  it('selects by only: missing does not take in failed', async () => {
    assert.deepEqual(keysOf(await plan({ ...range, only: ['missing'] })), ['2024-03-06']);
    assert.deepEqual(keysOf(await plan({ ...range, only: ['failed'] })), ['2024-03-04', '2024-03-05']);
    const both = await plan({ ...range, only: ['outdated', 'missing'] });
    assert.deepEqual(keysOf(both), ['2024-03-03', '2024-03-06']);
    assert.equal(both.range, undefined);
    assert.deepEqual(both.counts, { failed: 0, missing: 1, outdated: 1, changed: 0, filled: 0 });
  });

  it('is empty where only leaves nothing', async () => {
    const {
      entries,
      first,
      last,
      range: none,
    } = await plan({ from: '2024-03-01', to: '2024-03-02', only: ['missing'] });
    assert.deepEqual(
      { entries, first, last, none },
      { entries: [], first: undefined, last: undefined, none: undefined },
    );
  });
});

describe('plan: size', () => {
  it('plans 100,000 partitions', async () => {
    const { entries, range } = await plan({ from: '1750-01-01', to: '2023-10-16' }, { start: undefined });
    assert.equal(entries.length, 100_000);
    assert.ok(range);
  });
});
