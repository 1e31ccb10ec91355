import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { BackfillResult, Progress } from '../../src/contract.js';
import { cancelled, failureOf, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  fillsOf,
  gate,
  POLICY,
  runsOf,
  type Script,
  scripted,
  until,
  untilCancelled,
} from './scripted.js';

const KEYS = days('2024-01-01', 12);

function bad(): ApplicationFailure {
  return ApplicationFailure.nonRetryable('no rows at all', 'CheckFailed');
}

describe('a backfill some of whose partitions fail', () => {
  const harness = new Harness();

  async function start(script: Script, ...more: unknown[]) {
    const calls = scripted({ keys: KEYS, ...script, plan: { policy: POLICY, ...script.plan } });
    const handle = await harness.backfill(calls, ...more);
    const latest = harness.client.workflow.getHandle(handle.workflowId);
    return {
      handle,
      calls,
      latest,
      pull: (lever: string, input?: unknown) => latest.executeUpdate<unknown, [unknown]>(lever, { args: [input] }),
      progress: () => latest.query<Progress>('progress'),
    };
  }

  describe('onFailure: pause', () => {
    it('pauses once so many have failed, says why, and goes on when resumed, counting anew', async () => {
      let mended = false;
      const { calls, latest, pull, progress, handle } = await start(
        {
          plan: { concurrency: 2, onFailure: 'pause', maxFailures: 3 },
          fill: async () => {
            if (!mended) throw bad();
          },
        },
        { partitionsPerRun: 5 },
      );
      await until(async () => (await progress()).phase === 'paused' && (await progress()).running.length === 0);
      const { paused, failed } = await progress();
      assert.equal(paused?.by, 'failures');
      assert.match(
        paused?.reason ?? '',
        /^[34] partitions have failed; the last: 2024-01-0\d \(CheckFailed\): no rows at all$/,
      );
      assert.ok(fillsOf(calls).length <= 3 + 2, fillsOf(calls).join());
      await until(async () => calls.requests('noteBackfill').at(-1)?.paused?.by === 'failures');
      mended = true;
      await pull('resume');
      const result = (await failureOf(latest)).details?.[0] as BackfillResult;
      assert.deepEqual([result.filled, result.failed, result.stopped], [12 - failed, failed, undefined]);
      assert.deepEqual(fillsOf(calls).sort(), KEYS);
      assert.ok((await runsOf(harness.client, handle)).length >= 2);
    });

    it('pauses again only after as many failures again, also over continue-as-new', async () => {
      const { calls, latest, pull, progress } = await start(
        {
          plan: { concurrency: 1, onFailure: 'pause', maxFailures: 3 },
          fill: async () => {
            throw bad();
          },
        },
        { partitionsPerRun: 2 },
      );
      for (const ran of [3, 6, 9]) {
        await until(async () => (await progress()).paused !== undefined && fillsOf(calls).length === ran);
        await pull('resume');
      }
      const result = (await failureOf(latest)).details?.[0] as BackfillResult;
      // The last three fail with nothing left: there is nothing to pause for.
      assert.equal(result.failed, 12);
      assert.equal(fillsOf(calls).length, 12);
    });
  });

  it('onFailure: stop ends it once so many have failed, and says why', async () => {
    const { calls, handle } = await start({
      plan: { concurrency: 1, onFailure: 'stop', maxFailures: 2 },
      fill: async (key) => {
        if (key !== KEYS[1]) throw bad();
      },
    });
    const failure = await failureOf(handle);
    assert.match(failure.message, /stopped with 9 left, since 2 partitions have failed; the last: 2024-01-03/);
    const result = failure.details?.[0] as BackfillResult;
    assert.deepEqual([result.stopped, result.filled, result.failed], [true, 1, 2]);
    assert.deepEqual(fillsOf(calls), KEYS.slice(0, 3));
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'incomplete');
  });

  describe('canary', () => {
    it('is filled alone, and the rest follows', async () => {
      const gates = KEYS.map(() => gate());
      const { calls, handle } = await start({
        plan: { concurrency: 5, canary: 3 },
        fill: (key) => gates[KEYS.indexOf(key)]!.opened,
      });
      await until(() => fillsOf(calls).length === 3);
      gates[0]!.open();
      gates[1]!.open();
      await until(async () => (await handle.query<Progress>('progress')).filled === 2);
      assert.deepEqual(fillsOf(calls).sort(), KEYS.slice(0, 3));
      gates[2]!.open();
      await until(() => fillsOf(calls).length === 8);
      for (const one of gates) one.open();
      assert.equal(((await handle.result()) as BackfillResult).filled, 12);
      assert.deepEqual(failedTasks(await eventsOf(handle)), []);
    });

    it('that fails stops the backfill, which says so', async () => {
      const { calls, handle } = await start({
        plan: { concurrency: 3, canary: 3 },
        fill: async (key) => {
          if (key === KEYS[1]) throw bad();
        },
      });
      const failure = await failureOf(handle);
      assert.match(
        failure.message,
        /since 1 of the first 3 partitions \(canary\) failed: 2024-01-02 \(CheckFailed\): no rows at all/,
      );
      const result = failure.details?.[0] as BackfillResult;
      assert.deepEqual([result.stopped, result.filled, result.failed], [true, 2, 1]);
      assert.deepEqual(fillsOf(calls).sort(), KEYS.slice(0, 3));
    });

    it('that fails with onFailure: pause pauses it, and resumed it goes on with the rest', async () => {
      const { calls, handle, pull, progress, latest } = await start(
        {
          plan: { concurrency: 2, canary: 2, onFailure: 'pause' },
          fill: async (key) => {
            if (key === KEYS[0]) throw bad();
          },
        },
        { partitionsPerRun: 2 },
      );
      await until(async () => (await progress()).paused !== undefined);
      const { paused } = await progress();
      assert.equal(paused?.by, 'canary');
      assert.match(paused?.reason ?? '', /1 of the first 2 partitions \(canary\) failed: 2024-01-01/);
      await pull('resume');
      const result = (await failureOf(latest)).details?.[0] as BackfillResult;
      assert.deepEqual([result.filled, result.failed], [11, 1]);
      assert.deepEqual(fillsOf(calls).sort(), KEYS);
      assert.ok((await runsOf(harness.client, handle)).length >= 2);
    });

    it('is cancelled: nothing follows', async () => {
      const { calls, handle } = await start({ plan: { concurrency: 5, canary: 3 }, fill: untilCancelled });
      await until(() => fillsOf(calls).length === 3);
      await handle.cancel();
      await assert.rejects(handle.result(), cancelled);
      assert.deepEqual(fillsOf(calls).sort(), KEYS.slice(0, 3));
      assert.deepEqual(
        calls.requests('endBackfill').map(({ outcome }) => outcome),
        ['cancelled'],
      );
      assert.deepEqual(failedTasks(await eventsOf(handle)), []);
    });

    it('that ends within a batch counts the batch whole', async () => {
      const { calls, handle } = await start({ plan: { concurrency: 2, canary: 2, batch: 4 } });
      assert.equal(((await handle.result()) as BackfillResult).filled, 12);
      assert.equal(
        calls.calls.find((call) => call.startsWith('fillBatch')),
        `fillBatch ${KEYS[0]}..${KEYS[3]}`,
      );
    });

    it('of all that there is ends as any backfill does', async () => {
      const { handle } = await start({
        plan: { canary: 12, onFailure: 'pause' },
        fill: async (key) => {
          if (key === KEYS[11]) throw bad();
        },
      });
      const result = (await failureOf(handle)).details?.[0] as BackfillResult;
      assert.deepEqual([result.filled, result.failed, result.stopped], [11, 1, undefined]);
    });
  });
});
