import assert from 'node:assert/strict';
import { ON_BUSY } from '../../src/contract.js';
import { days, metOnce, Pairing } from './pairing.js';

/** How a person's session is named. */
const PERSON = /is held by pid \d+, role test_worker, application "psql", since \S+Z\. /;

for (const batch of [1, 3]) {
  describe(`a window that a person’s session holds, in a backfill ${batch > 1 ? 'by batches' : 'by days'}`, function () {
    this.timeout(300_000);
    let pairing: Pairing;
    before(async () => {
      pairing = await Pairing.open(`-- batch: ${batch}`);
    });
    after(() => pairing.close());

    for (const [i, onBusy] of ON_BUSY.entries()) {
      it(`${onBusy}: the days beside it are filled, and it is named`, async () => {
        const [k1 = '', k2 = '', k3 = ''] = days('2024-01-01', 9).slice(3 * i);
        await pairing.whileLocked(k2, async (person) => {
          const backfill = await pairing.backfill('meets', { from: k1, to: k3, onBusy });
          if (onBusy === 'wait') {
            const child = `${pairing.pipeline}/${batch > 1 ? `${k1}..${k3}` : k2}`;
            await pairing.triedAgain(child, PERSON);
            await person.query('ROLLBACK');
          }
          const { failures, ...counts } = await pairing.ended(backfill);
          assert.deepEqual(counts, metOnce(3, onBusy));
          if (onBusy === 'fail') {
            assert.deepEqual([failures[0]?.key, failures[0]?.type], [k2, 'Busy']);
            assert.match(failures[0]?.message ?? '', PERSON);
          }
          await person.query('ROLLBACK');
          // What was not filled is so afterwards, and no claim or session is in its way.
          if (onBusy !== 'wait') {
            const only = onBusy === 'fail' ? 'failed' : 'missing';
            const again = await pairing.backfill('again', { from: k1, to: k3, only: [only] });
            assert.equal((await pairing.ended(again)).filled, 1);
          }
          await pairing.isWhole({ [k1]: 1, [k2]: 1, [k3]: 1 }, [backfill]);
        });
      });
    }
  });
}

it('a window that is held for ever is waited for until giveUpAfter; the failure names the holder', async function () {
  this.timeout(300_000);
  // An attempt waits 6 s for its lock: on a slow machine too the first one ends of itself before time is up.
  const pairing = await Pairing.open('-- timeout: 60s\n-- retry: { giveUpAfter: 25s }');
  try {
    const [k1 = '', k2 = ''] = days('2024-01-01', 2);
    await pairing.whileLocked(k1, async () => {
      const backfill = await pairing.backfill('waits', { from: k1, to: k2, onBusy: 'wait' });
      const { failures, ...counts } = await pairing.ended(backfill);
      assert.deepEqual(counts, { filled: 1, skipped: 0, failed: 1 });
      assert.deepEqual([failures[0]?.key, failures[0]?.type], [k1, 'Conflict']);
      assert.match(failures[0]?.message ?? '', PERSON);
      const [failed] = await pairing.installation.look<{ message: string }>(
        `SELECT failure_message AS message FROM repave.partition WHERE key = $1 AND outcome = 'failed'`,
        [k1],
      );
      assert.match(failed?.message ?? '', PERSON);
      assert.match(failed?.message ?? '', /given up/);
    });
    await pairing.isWhole({ [k2]: 1 }, []);
  } finally {
    await pairing.close();
  }
});
