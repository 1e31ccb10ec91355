import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { BackfillFailed, type BackfillHandle } from '../../src/client.js';
import type { WorkerProcess } from '../support/worker.js';
import { until } from '../chaos/until.js';
import { days, Pairing } from './pairing.js';
import { progressOf } from './progress-of.js';

describe('a backfill that waits for another', function () {
  this.timeout(300_000);
  const workers: WorkerProcess[] = [];
  let pairing: Pairing;
  before(async () => {
    pairing = await Pairing.open();
    workers.push(pairing.worker);
    workers.push(await pairing.installation.startWorker());
  });
  after(() => pairing.close());

  /** Two backfills, of which the second has filled its other day and waits for the first. */
  async function meeting(first: string): Promise<{ keys: [string, string]; one: BackfillHandle; two: BackfillHandle }> {
    const [key = '', next = ''] = days(first, 2);
    await pairing.hold(key);
    const one = await pairing.backfill('one', { keys: [key] });
    await pairing.filling(key);
    const two = await pairing.backfill('two', { keys: [key, next], concurrency: 1, onBusy: 'wait' });
    await pairing.awaiting(two);
    await until('its other day to be filled', async () => (await progressOf(two))?.filled === 1);
    return { keys: [key, next], one, two };
  }

  /** The worker whose activity waits for the other backfill. */
  async function whoWaits({ id }: BackfillHandle): Promise<{ waits: WorkerProcess; identity: string }> {
    const { raw } = await pairing.installation.temporal.workflow.getHandle(id).describe();
    const identity = raw.pendingActivities?.[0]?.lastWorkerIdentity ?? '';
    const waits = workers.find(({ pid }) => identity === `${pid}@${hostname()}`);
    assert.ok(waits, `none of the workers is ${identity}`);
    return { waits, identity };
  }

  const cancelled = (error: unknown): boolean => error instanceof BackfillFailed && error.type === 'Cancelled';

  it('cancelled meanwhile, ends at once, and nothing of it starts after', async () => {
    const { keys, one, two } = await meeting('2024-01-01');
    await two.cancel();
    await assert.rejects(two.result(), cancelled);
    assert.equal((await pairing.filling(keys[0])).length, 1, 'while the first goes on');
    await pairing.letGo(keys[0]);
    assert.equal((await pairing.ended(one)).filled, 1);
    await pairing.isWhole({ [keys[0]]: 1, [keys[1]]: 1 }, [one, two]);
    assert.deepEqual(await pairing.installation.look('SELECT outcome FROM repave.backfill WHERE id = $1', [two.id]), [
      { outcome: 'cancelled' },
    ]);
  });

  it('cancelled while its fill waits for a person’s session, ends at once, and leaves nothing', async () => {
    const [key = ''] = days('2024-02-01', 1);
    await pairing.whileLocked(key, async (person) => {
      const backfill = await pairing.backfill('waits', { keys: [key] });
      await pairing.awaitingLock();
      await backfill.cancel();
      await assert.rejects(backfill.result(), cancelled);
      await person.query('ROLLBACK');
      assert.deepEqual(await pairing.installation.leftBehind(), []);
      assert.deepEqual(await pairing.installation.look('SELECT key FROM repave.fill WHERE key = $1', [key]), []);
    });
  });

  it('its worker killed meanwhile: another one waits on, and both end well', async () => {
    const { keys, one, two } = await meeting('2024-03-01');
    const { waits, identity } = await whoWaits(two);
    await waits.kill();
    await until('another worker to wait for the first backfill', async () => {
      const { raw: now } = await pairing.installation.temporal.workflow.getHandle(two.id).describe();
      const [activity] = now.pendingActivities ?? [];
      return activity?.lastWorkerIdentity && activity.lastWorkerIdentity !== identity;
    });
    await pairing.letGo(keys[0]);
    assert.equal((await pairing.ended(one)).filled, 1);
    assert.equal((await pairing.ended(two)).filled, 2);
    await pairing.isWhole({ [keys[0]]: 2, [keys[1]]: 1 }, [one, two]);
  });

  it('its worker told to stop meanwhile: the worker ends without waiting', async () => {
    const { keys, one, two } = await meeting('2024-04-01');
    const { waits } = await whoWaits(two);
    await pairing.installation.startWorker();
    const stopped = waits.stop();
    await pairing.letGo(keys[0]);
    assert.equal(await stopped, 0);
    assert.equal((await pairing.ended(one)).filled, 1);
    assert.equal((await pairing.ended(two)).filled, 2);
    await pairing.isWhole({ [keys[0]]: 2, [keys[1]]: 1 }, [one, two]);
  });
});
