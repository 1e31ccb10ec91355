import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { BackfillResult, Progress, Steered } from '../../src/contract.js';
import { cancelled, Harness } from './harness.js';
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
} from './scripted.js';

describe('a backfill over many runs', function () {
  this.timeout(1_200_000);
  const harness = new Harness();

  async function start(script: Script, partitionsPerRun: number) {
    const calls = scripted({ ...script, plan: { policy: POLICY, ...script.plan } });
    const handle = await harness.backfill(calls, { partitionsPerRun });
    return { calls, handle, latest: harness.client.workflow.getHandle(handle.workflowId) };
  }

  it('loses none of the levers that are pulled in bursts while runs follow each other', async () => {
    // Each update is followed by another: 220 levers.
    const [updates, signals] = [100, 20];
    const keys = days('2024-01-01', 1_000);
    // Its last tenth waits, so that it does not end before the last of them.
    const pulled = gate();
    const fill = async (key: string): Promise<void> => {
      if (key >= keys[900]!) await pulled.opened;
    };
    const { calls, handle, latest } = await start({ keys, plan: { concurrency: 2 }, fill }, 4);
    const reasons = Array.from({ length: updates }, (_, i) => `update ${i}`);
    const answers = new Map<string, Steered>();
    const burst = async (some: readonly string[]): Promise<void> => {
      await Promise.all(
        some.map(async (reason) => {
          const lever = latest.executeUpdate<Steered, [unknown]>('pause', { args: [{ reason }], updateId: reason });
          answers.set(reason, await lever);
          await latest.executeUpdate<Steered, [unknown]>('resume', { args: [{}], updateId: `resume after ${reason}` });
        }),
      );
    };
    const steering = (async () => {
      for (let i = 0; i < signals; i += 1) {
        await latest.signal('steer', {
          id: `signal ${i}`,
          lever: 'setConcurrency',
          input: { concurrency: 3 + (i % 2) },
        });
      }
    })();
    // Ten at a time: as many as one execution may have in flight.
    for (let i = 0; i < updates; i += 5) await burst(reasons.slice(i, i + 5));
    await steering;
    assert.equal(answers.size, updates);
    await latest.executeUpdate<Steered, [unknown]>('stop', { args: [{}] });
    pulled.open();
    const result = (await latest.result()) as BackfillResult;
    const runs = await runsOf(harness.client, handle);
    const accepted = new Map<string, number>();
    let heard = 0;
    for (const { runId } of runs) {
      const events = await eventsOf(harness.client.workflow.getHandle(handle.workflowId, runId));
      assert.deepEqual(failedTasks(events), []);
      for (const event of events) {
        const id = event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.meta?.updateId;
        if (id) accepted.set(id, (accepted.get(id) ?? 0) + 1);
        if (event.workflowExecutionSignaledEventAttributes) heard += 1;
      }
    }
    assert.equal(accepted.size, 2 * updates + 1);
    // Each was in force when it was answered. One that came twice did nothing the second time, and may have been answered then.
    for (const [reason, { paused }] of answers) {
      assert.ok(paused?.reason === reason || accepted.get(reason)! > 1, `${reason}: ${paused?.reason}`);
    }
    assert.equal(heard, signals);
    assert.ok(runs.length > 5, `${runs.length} runs`);
    assert.deepEqual(fillsOf(calls).length, result.filled);
    assert.equal(new Set(fillsOf(calls)).size, result.filled);
    // At the concurrency of the last signal. Not by the ledger's notes: one that is on its way is dropped as the backfill ends.
    const last = await latest.query<Progress>('progress');
    assert.deepEqual([last.phase, last.concurrency, last.paused], ['ended', 4, undefined]);
  });

  it('fills 1,500 partitions, none lost and none twice, in runs of short histories', async () => {
    const keys = days('2020-01-01', 1_500);
    const filled: string[] = [];
    const { handle, latest } = await start(
      { keys, plan: { concurrency: 20 }, fill: async (key) => void filled.push(key) },
      100,
    );
    const result = (await latest.result()) as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [1_500, 0]);
    assert.deepEqual(filled.sort(), keys);
    const runs = await runsOf(harness.client, handle);
    assert.equal(runs.length, 15);
    for (const { runId } of runs) {
      const events = await eventsOf(harness.client.workflow.getHandle(handle.workflowId, runId));
      assert.ok(events.length < 10_240, `${events.length} events`);
    }
  });

  it('never fills more at once than it is set to, also over continue-as-new', async () => {
    let [now, most, limit] = [0, 0, 1];
    const keys = days('2024-01-01', 60);
    const five = gate();
    const { calls, latest, handle } = await start(
      {
        keys,
        plan: { concurrency: 1 },
        fill: async (key) => {
          most = Math.max(most, ++now);
          assert.ok(now <= limit, `${now} at once`);
          if (now === 5) five.open();
          // From the fourth run on, which has more than five to fill, each waits for the others to be there.
          if (key >= keys[21]!) await five.opened;
          await new Promise((resolve) => setTimeout(resolve, 20));
          now -= 1;
        },
      },
      7,
    );
    await until(() => fillsOf(calls).length >= 10);
    assert.equal(most, 1);
    limit = 5;
    await latest.executeUpdate<Steered, [unknown]>('setConcurrency', { args: [{ concurrency: 5 }] });
    assert.equal(((await latest.result()) as BackfillResult).filled, 60);
    assert.equal(most, 5);
    assert.ok((await runsOf(harness.client, handle)).length >= 8);
  });

  it('stays paused over continue-as-new, and is cancelled there', async () => {
    const keys = days('2024-01-01', 40);
    const held = gate();
    const { calls, latest, handle } = await start(
      { keys, plan: { concurrency: 2 }, fill: (key) => (key < keys[2]! ? Promise.resolve() : held.opened) },
      4,
    );
    // All that the first run takes: once these have ended, it continues as new.
    await until(() => fillsOf(calls).length === 4);
    await latest.executeUpdate<Steered, [unknown]>('pause', { args: [{ reason: 'a while' }] });
    held.open();
    await until(async () => (await latest.describe()).runId !== handle.firstExecutionRunId);
    const { paused, running, filled } = await latest.query<Progress>('progress');
    assert.deepEqual([paused?.reason, running, filled], ['a while', [], 4]);
    await latest.cancel();
    await assert.rejects(latest.result(), cancelled);
    assert.equal(fillsOf(calls).length, 4);
    assert.deepEqual(
      (await runsOf(harness.client, handle)).map(({ status }) => status),
      ['CONTINUED_AS_NEW', 'CANCELLED'],
    );
  });

  for (const lever of ['stop', 'cancel'] as const) {
    it(`ends by a ${lever} at whatever moment, and starts nothing after`, async () => {
      for (const after of [1, 3, 4, 5, 7, 8, 9]) {
        const keys = days('2024-01-01', 30);
        let pulled: Promise<unknown> | undefined;
        const pull = async (): Promise<unknown> =>
          lever === 'cancel'
            ? harness.client.workflow.getHandle(handle.workflowId).cancel()
            : harness.client.workflow
                .getHandle(handle.workflowId)
                .executeUpdate<Steered, [unknown]>('stop', { args: [{}], updateId: randomUUID() });
        const { calls, handle, latest } = await start(
          {
            keys,
            plan: { concurrency: 2 },
            fill: async () => {
              // Around each fourth one run ends and the next begins.
              if (fillsOf(calls).length >= after) pulled ??= pull();
              // However long it is on its way, they are not all filled before.
              if (fillsOf(calls).length >= 20) await pulled;
            },
          },
          4,
        );
        if (lever === 'cancel') await assert.rejects(latest.result(), cancelled);
        else assert.equal(((await latest.result()) as BackfillResult).stopped, true);
        await pulled;
        const ran = fillsOf(calls).length;
        assert.ok(ran < keys.length, `${ran} ran`);
        const last = (await runsOf(harness.client, handle)).at(-1);
        assert.equal(last?.status, lever === 'cancel' ? 'CANCELLED' : 'COMPLETED');
        assert.deepEqual(
          calls.requests('endBackfill').map(({ outcome }) => outcome),
          [lever === 'cancel' ? 'cancelled' : 'stopped'],
        );
      }
    });
  }
});
