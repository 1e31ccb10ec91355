import assert from 'node:assert/strict';
import type { BackfillHandle } from '../../src/client.js';
import { ON_BUSY, type OnBusy } from '../../src/contract.js';
import { until } from '../chaos/until.js';
import { type Counts, days, Pairing } from './pairing.js';
import { progressOf } from './progress-of.js';

/**
 * Two backfills of four days, two at once each. One comes from the oldest day, the other from the newest, so that each meets
 * days that the other fills: the first finds the last two taken, and the other then finds the first taken.
 */
const OF_FIRST: Readonly<Record<OnBusy, Counts>> = {
  wait: { filled: 4, skipped: 0, failed: 0 },
  skip: { filled: 2, skipped: 2, failed: 0 },
  fail: { filled: 2, skipped: 0, failed: 2 },
};
const OF_SECOND: Readonly<Record<OnBusy, Counts>> = {
  wait: { filled: 4, skipped: 0, failed: 0 },
  skip: { filled: 3, skipped: 1, failed: 0 },
  fail: { filled: 3, skipped: 0, failed: 1 },
};

describe('two backfills of one range', function () {
  this.timeout(300_000);
  let pairing: Pairing;
  before(async () => {
    pairing = await Pairing.open();
  });
  after(() => pairing.close());

  /** Waits until a backfill has met as many days that the other fills, as its `onBusy` lets it be seen. */
  async function met(backfill: BackfillHandle, onBusy: OnBusy, busy: number): Promise<void> {
    if (onBusy === 'wait') return pairing.awaiting(backfill);
    await until(`${busy} days that another run fills`, async () => {
      const progress = await progressOf(backfill);
      return progress?.[onBusy === 'skip' ? 'skipped' : 'failed'] === busy;
    });
  }

  for (const [i, first] of ON_BUSY.entries()) {
    for (const [j, second] of ON_BUSY.entries()) {
      it(`that meet, the first ${first}, the second ${second}: each ends as it says, and fills no day twice`, async () => {
        const keys = days('2024-01-01', 36).slice((3 * i + j) * 4, (3 * i + j) * 4 + 4);
        const [k1 = '', k2 = '', k3 = '', k4 = ''] = keys;
        const range = { from: k1, to: k4, concurrency: 2 };
        await pairing.hold(...keys);
        const a = await pairing.backfill('a', { ...range, onBusy: first });
        await pairing.filling(k1, k2);
        const b = await pairing.backfill('b', { ...range, onBusy: second, order: 'newest-first' });
        await pairing.filling(k1, k2, k3, k4);

        await pairing.letGo(k2);
        await met(a, first, 2);
        await pairing.letGo(k3);
        await met(b, second, 1);
        await pairing.letGo(k1, k4);

        const [one, two] = await Promise.all([pairing.ended(a), pairing.ended(b)]);
        assert.deepEqual(countsOf(one), OF_FIRST[first]);
        assert.deepEqual(countsOf(two), OF_SECOND[second]);
        for (const { key, type, message } of [...one.failures, ...two.failures]) {
          assert.equal(type, 'Busy');
          assert.match(
            message,
            new RegExp(`Another run fills this partition \\(workflow ${pairing.pipeline}/${key}\\)`),
          );
        }
        const again = { first: first === 'wait' ? 1 : 0, second: second === 'wait' ? 1 : 0 };
        await pairing.isWhole({ [k1]: 1 + again.second, [k2]: 2, [k3]: 1 + again.first, [k4]: 1 + again.first }, [
          a,
          b,
        ]);
        assert.deepEqual(
          await pairing.installation.look(
            'SELECT id, outcome, filled::int, failed::int, skipped::int FROM repave.backfill WHERE id IN ($1, $2) ORDER BY id',
            [a.id, b.id],
          ),
          [
            { id: a.id, outcome: one.failed > 0 ? 'incomplete' : 'done', ...OF_FIRST[first] },
            { id: b.id, outcome: two.failed > 0 ? 'incomplete' : 'done', ...OF_SECOND[second] },
          ],
        );
      });
    }
  }
});

function countsOf({ filled, skipped, failed }: Counts): Counts {
  return { filled, skipped, failed };
}
