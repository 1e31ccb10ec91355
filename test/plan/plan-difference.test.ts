import assert from 'node:assert/strict';
import { exactInput } from '../../src/plan/exact-input.js';
import { parseBackfillInput } from '../../src/plan/parse-input.js';
import { Comparison } from '../../src/plan/plan-difference.js';
import { FINGERPRINT, keysOf, ledger, plan, row, type WholePlan } from './planning.js';

const RANGE = { from: '2024-03-01', to: '2024-03-06' };
const kept = ({ id, entries }: WholePlan) => ({
  id,
  reasons: new Map(entries.map(({ key, reason }) => [key, reason])),
});

describe('the difference from a kept plan', () => {
  const between = (then: WholePlan, now: WholePlan) => {
    const comparison = new Comparison(kept(then));
    for (const entry of now.entries) comparison.take([entry]);
    return comparison.difference(now);
  };

  it('is none where nothing changed, whatever the order', async () => {
    const none = { same: true, queryChanged: false, came: [], went: [], changed: [] };
    assert.deepEqual(between(await plan(RANGE), await plan({ ...RANGE, order: 'newest-first' })), none);
  });

  it('names what came, what went and what has another reason, in the order of the calendar', async () => {
    const only = ['missing', 'failed'] as const;
    const then = await plan({ ...RANGE, only });
    const changed = [
      ...ledger.filter(({ key }) => key !== '2024-03-01' && key !== '2024-03-05'),
      row('2024-03-05', 'filled', FINGERPRINT),
      row('2024-03-06', 'failed', null),
    ];
    const now = await plan({ ...RANGE, to: '2024-03-07', only, order: 'newest-first' }, {}, { ledger: changed });
    assert.deepEqual(between(then, now), {
      same: false,
      queryChanged: false,
      came: [
        { key: '2024-03-01', reason: 'missing' },
        { key: '2024-03-07', reason: 'missing' },
      ],
      went: [{ key: '2024-03-05', reason: 'failed' }],
      changed: [{ key: '2024-03-06', from: 'missing', to: 'failed' }],
    });
  });

  it('says that the query changed, also where it changed nothing else', async () => {
    const only = ['missing'] as const;
    const now = await plan({ ...RANGE, only }, { fingerprint: 'v1:later' });
    const told = between(await plan({ ...RANGE, only }), now);
    assert.deepEqual(told, { same: false, queryChanged: true, came: [], went: [], changed: [] });
  });
});

describe('the input that runs exactly a plan', () => {
  it('means the same partitions tomorrow, where the one it was made of would not', async () => {
    const tomorrow = { now: new Date('2024-03-11T12:00:00Z') };
    for (const asked of [
      { last: 3 },
      { last: 2, lookback: 2 },
      { from: '2024-03-05' },
      { only: ['missing'] as const },
      { from: '2024-03-01', includeUnfinished: true },
      { keys: ['2024-03-02', '2024-03-05..2024-03-07'], order: 'newest-first' as const },
    ]) {
      const today = await plan(asked, { lookback: 1 });
      const { pipeline, ...exact } = exactInput({ pipeline: 'sales', ...asked, dryRun: true }, today);
      assert.equal(pipeline, 'sales');
      assert.equal(exact.plan, today.id);
      // As a command line would be judged.
      parseBackfillInput(exactInput({ pipeline: 'sales', ...asked }, today), []);
      const then = await plan(exact, { lookback: 1 }, tomorrow);
      assert.deepEqual([keysOf(then), then.id], [keysOf(today), today.id], JSON.stringify(asked));
    }
  });
});
