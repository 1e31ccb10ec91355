import assert from 'node:assert/strict';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { AwaitPartitionsRequest } from '../../src/activities/messages.js';
import { type BackfillResult, partitionWorkflowId, type Progress, type Steered } from '../../src/contract.js';
import { cancelled, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  gate,
  POLICY,
  runsOf,
  scheduledActivities,
  scripted,
  type Scripted,
  until,
  untilCancelled,
} from './scripted.js';

const KEYS = days('2024-01-01', 8);
const BUSY = KEYS.slice(0, 3);
interface Busy {
  readonly handle: WorkflowHandleWithFirstExecutionRunId;
  readonly calls: Scripted;
  /** The other runs, and what lets each end. */
  readonly others: readonly { readonly release: () => void; readonly ended: Promise<unknown> }[];
}

describe('several partitions that other runs fill', () => {
  const harness = new Harness();

  const fillsOf = ({ calls }: Scripted): number => calls.filter((call) => call.startsWith('fillPartition')).length;

  /** A backfill of one lane whose first three keys are busy. `wait`: waits for the first of the others to end, unless given. */
  async function start(
    more: unknown[] = [],
    wait?: (request: AwaitPartitionsRequest) => Promise<never>,
  ): Promise<Busy> {
    const held = BUSY.map(() => gate());
    const tried = new Set<string>();
    const ends: Promise<unknown>[] = [];
    const calls = scripted({
      keys: KEYS,
      plan: { concurrency: 1, policy: POLICY },
      fill: async (key) => {
        const i = BUSY.indexOf(key);
        if (i < 0 || tried.has(key)) return;
        tried.add(key);
        await held[i]!.opened;
      },
      control: {
        awaitPartitions: async (request) => {
          if (wait) return wait(request);
          const { runs } = request;
          const first = await Promise.race(
            runs.map(async (run) => {
              const i = BUSY.findIndex((key) => run.keys.includes(key));
              await ends[i];
              return run;
            }),
          );
          return { ended: [{ id: first.id, wantedKeys: first.keys }] };
        },
      },
    });
    const { pipeline } = calls;
    const taskQueue = await harness.workers(calls);
    for (const key of BUSY) {
      const workflowId = partitionWorkflowId(pipeline, key);
      const other = await harness.client.workflow.start('partition', {
        taskQueue,
        workflowId,
        args: [{ pipeline, key }],
      });
      ends.push(other.result());
    }
    await until(() => fillsOf(calls) === BUSY.length);
    const workflowId = `backfill/${pipeline}`;
    const handle = await harness.client.workflow.start('backfill', {
      taskQueue,
      workflowId,
      args: [{ pipeline }, ...more],
    });
    return { handle, calls, others: held.map(({ open }, i) => ({ release: open, ended: ends[i]! })) };
  }

  const progressOf = (handle: WorkflowHandleWithFirstExecutionRunId): Promise<Progress> =>
    harness.client.workflow.getHandle(handle.workflowId).query<Progress>('progress');

  it('go behind all others, hold no lane, and are waited for by one activity at a time', async () => {
    const { handle, calls, others } = await start();
    await until(async () => (await progressOf(handle)).filled === 5);
    const progress = await progressOf(handle);
    assert.deepEqual([progress.busy, progress.running, progress.phase], [3, [], 'filling']);
    await until(() => calls.requests('awaitPartitions').length === 1);
    // The last is the first to end, and is filled while the others are still waited for.
    others[2]!.release();
    await until(async () => (await progressOf(handle)).filled === 6);
    others[0]!.release();
    others[1]!.release();
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.filled, result.skipped, result.failed], [8, 0, 0]);
    const events = await eventsOf(handle);
    assert.deepEqual(failedTasks(events), []);
    assert.ok(!events.some((event) => event.timerStartedEventAttributes));
    const waits = scheduledActivities(events).filter((name) => name.startsWith('await'));
    assert.ok(waits.length <= 3 && waits.every((name) => name === 'awaitPartitions'), waits.join());
    assert.deepEqual(calls.requests('awaitPartitions')[0]?.runs.length, 3);
  });

  it('are carried over continue-as-new', async () => {
    const { handle, others } = await start([{ partitionsPerRun: 3 }]);
    await until(async () => (await progressOf(handle)).filled === 5);
    assert.equal((await progressOf(handle)).busy, 3);
    for (const { release } of others) release();
    const latest = harness.client.workflow.getHandle(handle.workflowId);
    assert.equal(((await latest.result()) as BackfillResult).filled, 8);
    assert.ok((await runsOf(harness.client, handle)).length >= 3);
  });

  it('hold up no cancel and no stop, and nothing of them is started after', async () => {
    for (const lever of ['cancel', 'stop'] as const) {
      const { handle, calls, others } = await start([], untilCancelled);
      await until(async () => (await progressOf(handle)).filled === 5);
      await until(() => calls.requests('awaitPartitions').length === 1);
      const before = fillsOf(calls);
      if (lever === 'cancel') {
        await handle.cancel();
        await assert.rejects(handle.result(), cancelled);
      } else {
        await handle.executeUpdate<Steered, [unknown]>('stop', { args: [{}] });
        const result = (await handle.result()) as BackfillResult;
        assert.deepEqual([result.stopped, result.filled, result.failed], [true, 5, 0]);
      }
      assert.equal(fillsOf(calls), before);
      for (const { release, ended } of others) {
        release();
        await ended;
      }
    }
  });

  it('wait through a pause', async () => {
    const { handle, calls, others } = await start();
    await until(async () => (await progressOf(handle)).filled === 5);
    await handle.executeUpdate<Steered, [unknown]>('pause', { args: [{}] });
    const before = fillsOf(calls);
    for (const { release, ended } of others) {
      release();
      await ended;
    }
    assert.equal((await progressOf(handle)).phase, 'paused');
    assert.equal(fillsOf(calls), before);
    await handle.executeUpdate<Steered, [unknown]>('resume', { args: [{}] });
    assert.equal(((await handle.result()) as BackfillResult).filled, 8);
  });
});
