import assert from 'node:assert/strict';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { Failure, RunFailed } from '../../src/client.js';
import { ON_BUSY, type PartitionResult } from '../../src/contract.js';
import { days, metOnce, Pairing, ROWS } from './pairing.js';

describe('a partition started alone, and a backfill that meets it', function () {
  this.timeout(300_000);
  let pairing: Pairing;
  const days40 = days('2024-01-01', 40);
  const nextDay = (): string => days40.shift() ?? '';
  before(async () => {
    pairing = await Pairing.open();
  });
  after(() => pairing.close());

  for (const onBusy of ON_BUSY) {
    it(`under an id of its own, a backfill filling it: ${onBusy}`, async () => {
      const key = nextDay();
      await pairing.hold(key);
      const backfill = await pairing.backfill('running', { keys: [key] });
      const [run = ''] = await pairing.filling(key);
      const alone = await pairing.alone(key, onBusy);
      if (onBusy === 'wait') await pairing.awaitingLock();
      else if (onBusy === 'skip') assert.equal((await resultOf(alone)).skipped, true);
      else assert.match((await failureOf(alone)).message, new RegExp(`workflow ${pairing.pipeline}/${key}\\)`));
      assert.equal(await pairing.filling(key).then(([still]) => still), run, 'the backfill’s fill goes on');
      await pairing.letGo(key);
      assert.deepEqual(await pairing.ended(backfill), { filled: 1, skipped: 0, failed: 0, failures: [] });
      if (onBusy === 'wait') assert.equal((await resultOf(alone)).rows, ROWS);
      await pairing.isWhole({ [key]: onBusy === 'wait' ? 2 : 1 }, [backfill, { id: alone.workflowId }]);
    });

    it(`by the client, a backfill filling it: ${onBusy}`, async () => {
      const key = nextDay();
      const { pipeline, client } = pairing;
      await pairing.hold(key);
      const backfill = await pairing.backfill('running', { keys: [key] });
      await pairing.filling(key);
      const alone = client.partition({ pipeline, key, onBusy });
      if (onBusy === 'skip') assert.equal((await alone).joined, true);
      if (onBusy === 'fail') {
        await assert.rejects(alone, (error: unknown) => error instanceof Failure && error.type === 'Busy');
      }
      await pairing.letGo(key);
      assert.deepEqual(await pairing.ended(backfill), { filled: 1, skipped: 0, failed: 0, failures: [] });
      if (onBusy !== 'fail') assert.equal((await (await alone).result()).rows, ROWS);
      await pairing.isWhole({ [key]: onBusy === 'wait' ? 2 : 1 }, [backfill]);
    });

    it(`under an id of its own, met by a backfill: ${onBusy}`, async () => {
      const [key, next] = [nextDay(), nextDay()];
      await pairing.hold(key);
      const alone = await pairing.alone(key, 'wait');
      const [run = ''] = await pairing.filling(key);
      const backfill = await pairing.backfill('meets', { keys: [key, next], concurrency: 1, onBusy });
      // Nothing in Temporal shows that they meet, so that the lock does: of the others, who waits for it but once, their end says so.
      if (onBusy === 'wait') {
        await pairing.awaitingLock();
        await pairing.letGo(key);
      }
      const { failures, ...counts } = await pairing.ended(backfill);
      assert.deepEqual(counts, metOnce(2, onBusy));
      if (onBusy === 'fail') {
        assert.deepEqual([failures[0]?.key, failures[0]?.type], [key, 'Busy']);
        assert.match(failures[0]?.message ?? '', new RegExp(`is held by run ${run} of ${pairing.pipeline} ${key} \\(`));
      }
      await pairing.letGo(key);
      assert.equal((await resultOf(alone)).rows, ROWS);
      await pairing.isWhole({ [key]: onBusy === 'wait' ? 2 : 1, [next]: 1 }, [backfill, { id: alone.workflowId }]);
    });

    it(`by the client, met by a backfill: ${onBusy}`, async () => {
      const [key, next] = [nextDay(), nextDay()];
      await pairing.hold(key);
      const alone = await pairing.client.partition({ pipeline: pairing.pipeline, key });
      await pairing.filling(key);
      const backfill = await pairing.backfill('meets', { keys: [key, next], concurrency: 1, onBusy });
      if (onBusy === 'wait') {
        await pairing.awaiting(backfill);
        await pairing.letGo(key);
      }
      const { failures, ...counts } = await pairing.ended(backfill);
      assert.deepEqual(counts, metOnce(2, onBusy));
      assert.deepEqual(
        failures.map(({ type }) => type),
        onBusy === 'fail' ? ['Busy'] : [],
      );
      await pairing.letGo(key);
      assert.equal((await alone.result()).rows, ROWS);
      await pairing.isWhole({ [key]: onBusy === 'wait' ? 2 : 1, [next]: 1 }, [backfill, alone]);
    });
  }
});

describe('batches that meet in a part', function () {
  this.timeout(300_000);
  let pairing: Pairing;
  before(async () => {
    pairing = await Pairing.open('-- batch: 3');
  });
  after(() => pairing.close());

  for (const [i, onBusy] of ON_BUSY.entries()) {
    it(`a day alone, in the middle of a backfill’s batch: ${onBusy}`, async () => {
      const [k1 = '', k2 = '', k3 = ''] = days('2024-01-01', 12).slice(4 * i);
      const { pipeline, client } = pairing;
      await pairing.hold(k2);
      const backfill = await pairing.backfill('batch', { from: k1, to: k3 });
      const [run = ''] = await pairing.filling(k2);
      const alone = await client.partition({ pipeline, key: k2, onBusy });
      if (onBusy === 'wait') {
        await pairing.triedAgain(alone.id, new RegExp(`held by run ${run} of ${pipeline} ${k2} \\(pid`));
      } else if (onBusy === 'skip') {
        assert.equal((await alone.result()).skipped, true);
      } else {
        await assert.rejects(alone.result(), (error: unknown) => error instanceof RunFailed && error.type === 'Busy');
      }
      await pairing.letGo(k2);
      assert.deepEqual(await pairing.ended(backfill), { filled: 3, skipped: 0, failed: 0, failures: [] });
      if (onBusy === 'wait') assert.equal((await alone.result()).rows, ROWS);
      const batch = { id: `${pipeline}/${k1}..${k3}` };
      await pairing.isWhole({ [k1]: 1, [k2]: onBusy === 'wait' ? 2 : 1, [k3]: 1 }, [backfill, alone, batch]);
    });

    it(`two batches that share a day: ${onBusy}, each day on its own`, async () => {
      const [k1 = '', k2 = '', k3 = '', k4 = ''] = days('2024-02-01', 12).slice(4 * i);
      const { pipeline } = pairing;
      await pairing.hold(k2);
      const first = await pairing.backfill('first', { from: k1, to: k3 });
      const [run = ''] = await pairing.filling(k2);
      const second = await pairing.backfill('second', { from: k2, to: k4, onBusy });
      if (onBusy === 'wait') {
        await pairing.awaitingLock();
        await pairing.letGo(k2);
      }
      const { failures, ...counts } = await pairing.ended(second);
      assert.deepEqual(counts, metOnce(3, onBusy));
      if (onBusy === 'fail') {
        assert.deepEqual([failures[0]?.key, failures[0]?.type], [k2, 'Busy']);
        assert.match(failures[0]?.message ?? '', new RegExp(`is held by run ${run} of ${pipeline} ${k2} \\(`));
      }
      await pairing.letGo(k2);
      assert.deepEqual(await pairing.ended(first), { filled: 3, skipped: 0, failed: 0, failures: [] });
      await pairing.isWhole({ [k1]: 1, [k2]: onBusy === 'wait' ? 2 : 1, [k3]: 2, [k4]: 1 }, [
        first,
        second,
        { id: `${pipeline}/${k1}..${k3}` },
        { id: `${pipeline}/${k2}..${k4}` },
      ]);
    });
  }
});

interface Run {
  result(): Promise<unknown>;
}

async function resultOf(run: Run): Promise<PartitionResult> {
  return (await run.result()) as PartitionResult;
}

/** The failure of a run that ends as `Busy`. */
async function failureOf(run: Run): Promise<ApplicationFailure> {
  const error: unknown = await run.result().catch((thrown: unknown) => thrown);
  assert.ok(error instanceof WorkflowFailedError && error.cause instanceof ApplicationFailure);
  assert.equal(error.cause.type, 'Busy');
  return error.cause;
}
