import assert from 'node:assert/strict';
import type { BackfillInput } from '../../src/contract.js';
import { type Plan, resolvePlan } from '../../src/plan/resolve-plan.js';
import type { RestingPartition } from '../../src/warehouse/resting.js';
import { ledger, NOW, pipeline, plan, statesOf } from './planning.js';

const FIELDS = { from: '2024-03-01', to: '2024-03-08', only: ['failed', 'missing'] } as const;

/** A plan of a ledger in which two have failed, of which these rest; and what was asked about them. */
async function planWith(
  resting: readonly RestingPartition[],
  fields: Partial<BackfillInput> = { tries: 3 },
): Promise<{ plan: Plan; keys: readonly string[]; asked: readonly unknown[] }> {
  const keys: string[] = [];
  const asked: unknown[] = [];
  const found = await resolvePlan(
    { pipeline: 'sales', ...FIELDS, ...fields },
    pipeline(),
    {
      now: NOW,
      states: statesOf(ledger),
      resting: (failed, tries) => {
        asked.push([failed, tries]);
        return Promise.resolve(resting.filter(({ key }) => failed.includes(key)));
      },
    },
    (page) => void keys.push(...page.map(({ key }) => key)),
  );
  return { plan: found, keys, asked };
}

const ONE: RestingPartition = { key: '2024-03-04', type: 'CheckFailed', tries: 3 };
const TWO: RestingPartition = { key: '2024-03-05', type: 'DataError', tries: 4 };

describe('plan: partitions that rest', () => {
  it('are left out, counted, and said, with what to do', async () => {
    const { plan, keys, asked } = await planWith([ONE]);
    assert.deepEqual(asked, [[['2024-03-04', '2024-03-05'], 3]]);
    assert.deepEqual(keys, ['2024-03-05', '2024-03-06', '2024-03-07', '2024-03-08']);
    assert.deepEqual([plan.total, plan.counts.failed, plan.resting], [4, 1, 1]);
    assert.deepEqual(plan.notes, [
      '1 partition rests after 3 tries as CheckFailed: 2024-03-04. Mend the cause, and fill it by name: repave backfill sales 2024-03-04',
    ]);
    const { plan: both } = await planWith([ONE, TWO]);
    assert.equal(both.resting, 2);
    assert.match(
      both.notes.join(),
      /2 partitions rest, .*2024-03-04 \(CheckFailed, 3×\), 2024-03-05 \(DataError, 4×\)\. /,
    );
  });

  it('are as if they were not there to the plan’s id', async () => {
    const { plan: left } = await planWith([ONE, TWO]);
    const named = await plan({ keys: ['2024-03-06..2024-03-08'], only: ['missing'] });
    assert.equal(left.id, named.id);
    assert.notEqual((await planWith([])).plan.id, left.id);
  });

  it('are not asked about without tries, and none is said to rest', async () => {
    const { plan, keys, asked } = await planWith([ONE], {});
    assert.deepEqual([asked, plan.resting, plan.notes], [[], undefined, []]);
    assert.ok(keys.includes(ONE.key));
  });

  it('are 0 where there are none', async () => {
    const { plan } = await planWith([]);
    assert.deepEqual([plan.resting, plan.notes], [0, []]);
  });
});
