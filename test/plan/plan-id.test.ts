import assert from 'node:assert/strict';
import { PARTITION_STATES } from '../../src/contract.js';
import { parseBackfillInput } from '../../src/plan/parse-input.js';
import { judgePlan } from '../../src/plan/plan-changed.js';
import { planId, queryOf, readPlanId } from '../../src/plan/plan-id.js';
import { failure } from './failure.js';
import { FINGERPRINT, ledger, plan, row } from './planning.js';

const RANGE = { from: '2024-03-01', to: '2024-03-06' };

describe('the id of a plan', () => {
  it('is readable, short, and stands in URLs and shells as it is', async () => {
    const { id } = await plan(RANGE);
    assert.match(id, /^p1-now-failed2-missing1-outdated1-filled2-[0-9a-f]{20}$/);
    const counts = { failed: 100_000, missing: 100_000, outdated: 100_000, changed: 0, filled: 700_000 };
    const query = queryOf(`v1:${'0123456789abcdef'.repeat(4)}`);
    const long = planId({ query, counts, digest: 'f'.repeat(20) });
    assert.ok(long.length <= 92, long);
    assert.equal(encodeURIComponent(long), long);
    assert.deepEqual(readPlanId(long), { query: '0123456789ab', counts, digest: 'f'.repeat(20) });
    const none = (await plan({ ...RANGE, only: ['missing'], to: '2024-03-02' })).id;
    assert.equal(none, `p1-now-${'0'.repeat(20)}`);
    assert.deepEqual(readPlanId(none).counts, Object.fromEntries(PARTITION_STATES.map((state) => [state, 0])));
  });

  it('stays where nothing but the data changed, or how they are filled', async () => {
    const { id } = await plan(RANGE);
    const again = ledger.map((entry) => ({ ...entry, rows: 99, filledAt: entry.filledAt && new Date(86_400_000) }));
    assert.equal((await plan(RANGE, {}, { ledger: again })).id, id);
    for (const how of [
      { order: 'newest-first' },
      { concurrency: 9, priority: 1, onBusy: 'skip', canary: 2, onFailure: 'stop', maxFailures: 7 },
      { only: undefined },
    ] as const) {
      assert.equal((await plan({ ...RANGE, ...how })).id, id, JSON.stringify(how));
    }
    for (const pageSize of [1, 2, 5, 6, 7]) assert.equal((await plan(RANGE, {}, { pageSize })).id, id);
    const keys = ['2024-03-06', '2024-03-04..2024-03-05', '2024-03-01..2024-03-03'];
    assert.equal((await plan({ keys })).id, id, 'the same partitions, named otherwise');
    assert.equal((await plan(RANGE, { concurrency: 50, timeoutMs: 9, checks: [] })).id, id);
  });

  it('is another one with a key, a reason or the query', async () => {
    const { id } = await plan(RANGE);
    const others = {
      'a key more': await plan({ ...RANGE, to: '2024-03-07' }),
      'a key less': await plan({ ...RANGE, from: '2024-03-02' }),
      'another key of the same reasons': await plan({ keys: ['2024-03-01..2024-03-05', '2024-03-08'] }),
      'another reason': await plan(RANGE, {}, { ledger: [...ledger, row('2024-03-06', 'filled', FINGERPRINT)] }),
      'another query': await plan(RANGE, { fingerprint: 'v1:later' }),
    };
    for (const [what, other] of Object.entries(others)) assert.notEqual(other.id, id, what);
    // Two partitions that swap their reasons: the counts alone would not tell.
    const swapped = await plan(
      { from: '2024-03-02', to: '2024-03-03' },
      {},
      { ledger: [row('2024-03-02', 'filled', 'v1:before'), row('2024-03-03', 'filled', FINGERPRINT)] },
    );
    const before = await plan({ from: '2024-03-02', to: '2024-03-03' });
    assert.deepEqual(swapped.counts, before.counts);
    assert.notEqual(swapped.id, before.id);
  });

  it('of another form is refused with what was expected', async () => {
    const { id } = await plan(RANGE);
    assert.equal(parseBackfillInput({ pipeline: 's', last: 1, plan: id }, []).plan, id);
    for (const wrong of [
      '',
      'last week',
      id.slice(0, -1),
      `${id}0`,
      id.toUpperCase(),
      id.replace('p1', 'p2'),
      id.replace('failed2', 'failed02'),
      id.replace('failed2-missing1', 'missing1-failed2'),
      ` ${id}`,
    ]) {
      const told = failure('InvalidInput', () => parseBackfillInput({ pipeline: 's', last: 1, plan: wrong }, []));
      assert.match(told, /plan is ".*expected a plan's id as `repave plan` gives it, such as p1-/s, wrong);
      failure('InvalidInput', () => readPlanId(wrong));
    }
  });
});

describe('a plan that is no longer the one asked for', () => {
  it('is refused with counts then and now, and whether the query changed', async () => {
    const then = await plan(RANGE);
    judgePlan(then.id, then);
    const failed = await plan(RANGE, {}, { ledger: [...ledger, row('2024-03-06', 'failed', null)] });
    const told = failure('PlanChanged', () => judgePlan(then.id, failed));
    assert.match(
      told,
      /Then: 6 partitions \(2 failed, 1 missing, 1 outdated, 2 filled\); now: 6 partitions \(3 failed, 1 outdated, 2 filled\)\./,
    );
    assert.match(told, /The query is the same\. Nothing was begun\..*--against/);
    assert.ok(told.includes(failed.id));
  });

  it('says so where the query alone changed, or the partitions behind the same counts', async () => {
    const one = await plan({ from: '2024-03-06', to: '2024-03-07' });
    const query = await plan({ from: '2024-03-06', to: '2024-03-07' }, { fingerprint: 'v1:later' });
    const told = failure('PlanChanged', () => judgePlan(one.id, query));
    assert.match(told, /The same partitions for the same reasons\. The query changed: now then, later now\./);
    const moved = await plan({ from: '2024-03-07', to: '2024-03-08' });
    assert.match(
      failure('PlanChanged', () => judgePlan(one.id, moved)),
      /Then: 2 partitions \(2 missing\); now: 2 partitions \(2 missing\)\. As many for each reason, but not the same ones\./,
    );
  });
});
