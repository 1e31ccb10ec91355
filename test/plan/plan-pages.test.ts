import assert from 'node:assert/strict';
import { countBetween } from '../../src/calendar/range.js';
import { resolvePlan } from '../../src/plan/resolve-plan.js';
import { pagesOf } from '../../src/plan/plan-pages.js';
import { keysOf, NOW, pipeline, plan } from './planning.js';

const DAYS = { by: 'day', zone: 'UTC' } as const;
const SPANS = [
  { from: '2024-01-01', to: '2024-01-03' },
  { from: '2024-01-05', to: '2024-01-05' },
  { from: '2024-02-01', to: '2024-02-02' },
];

describe('pages of a plan', () => {
  it('go through all spans in either order, whatever their size', () => {
    const keys = ['2024-01-01', '2024-01-02', '2024-01-03', '2024-01-05', '2024-02-01', '2024-02-02'];
    for (let size = 1; size <= 7; size++) {
      for (const order of ['oldest-first', 'newest-first'] as const) {
        const pages = [...pagesOf(DAYS, SPANS, order, size)];
        assert.deepEqual(
          pages.flatMap((page) => page.keys),
          order === 'oldest-first' ? keys : keys.toReversed(),
        );
        assert.ok(pages.slice(0, -1).every((page) => page.keys.length === size));
        for (const page of pages) {
          // Exactly the page's keys are asked for, none in the holes between them.
          const asked = page.spans.reduce((sum, { from, to }) => sum + countBetween(DAYS, from, to), 0);
          assert.equal(asked, page.keys.length);
        }
      }
    }
  });

  it('are all that a plan holds: the next is asked for when the one before has been taken', async () => {
    const pageSize = 1_000;
    let held = 0;
    let most = 0;
    let taken = 0;
    const found = await resolvePlan(
      { pipeline: 'sales', from: '2012-01-01T00Z', to: '2023-05-29T15Z' },
      pipeline({ start: undefined, partition: { column: 'd', by: 'hour', zone: 'UTC' } }),
      {
        now: NOW,
        pageSize,
        states: async (spans) => {
          held += spans.reduce((sum, { from, to }) => sum + countBetween({ by: 'hour', zone: 'UTC' }, from, to), 0);
          most = Math.max(most, held);
          return new Map();
        },
      },
      async (page) => {
        await new Promise((resolve) => setImmediate(resolve));
        held -= page.length;
        taken += page.length;
      },
    );
    assert.deepEqual(
      { most, taken, total: found.total, missing: found.counts.missing },
      {
        most: pageSize,
        taken: 100_000,
        total: 100_000,
        missing: 100_000,
      },
    );
    assert.ok(found.range);
  });

  it('make the same plan as one page does', async () => {
    for (const order of ['oldest-first', 'newest-first'] as const) {
      const asked = { from: '2024-02-20', to: '2024-03-08', only: ['missing', 'failed'], order } as const;
      const whole = await plan(asked);
      for (const pageSize of [1, 3, 4]) assert.deepEqual(await plan(asked, {}, { pageSize }), whole);
      assert.deepEqual(keysOf(whole).toSorted()[0], whole.first);
    }
  });
});
