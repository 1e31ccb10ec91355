import assert from 'node:assert/strict';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import {
  type BackfillResult,
  type Lever,
  MAX_WAITING,
  partitionWorkflowId,
  type Progress,
  type Steered,
} from '../../src/contract.js';
import { Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  fillsOf,
  gate,
  POLICY,
  runsOf,
  type Script,
  type Scripted,
  scripted,
  until,
  untilCancelled,
} from './scripted.js';

const LONG = { retryAfterMs: 3_600_000 };
const [late = '', busy = '', last = ''] = days('2024-01-01', 3);
/** Milliseconds: what comes before and after a pause must take less, however slow the machine. */
const GIVE_UP_AFTER_MS = 20_000;
const policy = { ...POLICY, giveUpAfterMs: GIVE_UP_AFTER_MS };

describe('a pause that is longer than giveUpAfter', function () {
  this.timeout(180_000);
  const others: (() => void)[] = [];
  // Before the workers are stopped, which waits for what they do.
  afterEach(() => {
    for (const end of others.splice(0)) end();
  });
  const harness = new Harness();

  /** A backfill whose newest run is told and asked. */
  function chain({ workflowId }: WorkflowHandleWithFirstExecutionRunId) {
    const newest = harness.client.workflow.getHandle(workflowId);
    return {
      pull: (lever: Lever) => newest.executeUpdate<Steered, []>(lever),
      progress: () => newest.query<Progress>('progress'),
      result: async () => (await newest.result()) as BackfillResult,
    };
  }

  /** Another run that fills a partition, or several, until it is let go. */
  async function other({ pipeline }: Scripted, name: string): Promise<{ end: () => Promise<void> }> {
    const held = gate();
    others.push(held.open);
    const taskQueue = await harness.workers(scripted({ fill: () => held.opened }));
    const options = { taskQueue, workflowId: partitionWorkflowId(pipeline, name), args: [{ pipeline, key: name }] };
    const run = await harness.client.workflow.start('partition', options);
    return {
      end: async () => {
        held.open();
        await run.result();
      },
    };
  }

  /** Returns once all that was tried so far has no time left, but for the pause. */
  async function outlast(): Promise<void> {
    const from = Date.now();
    await until(() => Date.now() > from + GIVE_UP_AFTER_MS);
  }

  /** A partition that is not ready at first, and fails where its time is up; the last one is held. */
  function notReadyAtFirst() {
    const held = gate();
    let tries = 0;
    const fill: Script['fill'] = async (key, { policy: { notReady } }) => {
      if (key === last) await held.opened;
      if (key !== late) return 1;
      tries += 1;
      if (notReady === 'fail') throw ApplicationFailure.nonRetryable('not there', 'SourceNotReady');
      return tries === 1 ? LONG : 1;
    };
    return { held, fill };
  }

  it('does not count for those that are not ready, nor for those that other runs fill', async () => {
    const { held, fill } = notReadyAtFirst();
    let asked = 0;
    const calls = scripted({
      keys: [late, busy, last],
      plan: { concurrency: 1, asksReady: true, policy },
      fill,
      control: {
        awaitPartitions: async ({ runs }) => {
          asked += 1;
          // The first is asked before the pause, and its time is over in it.
          if (asked === 1) return await untilCancelled();
          await meanwhile.end();
          return { ended: runs.map(({ id, keys }) => ({ id, wantedKeys: keys })) };
        },
      },
    });
    const meanwhile = await other(calls, busy);
    const handle = await harness.backfill(calls);
    const { pull, progress, result } = chain(handle);
    await until(() => fillsOf(calls).includes(last));
    await pull('pause');
    held.open();
    await until(async () => (await progress()).filled === 1);
    await outlast();
    const { waiting, busy: others, failed } = await progress();
    assert.deepEqual([waiting, others, failed], [1, 1, 0]);
    await pull('resume');
    const { filled, failures } = await result();
    assert.deepEqual([filled, failures], [3, []]);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('does not count where it was over before the run continued as new', async () => {
    const { held, fill } = notReadyAtFirst();
    const plan = { concurrency: 1, asksReady: true, policy } as const;
    const calls = scripted({ keys: [late, last, busy], plan, fill });
    // With the third the run is full, before what waits is tried again.
    const handle = await harness.backfill(calls, { partitionsPerRun: 3 });
    const { pull, progress, result } = chain(handle);
    await until(() => fillsOf(calls).includes(last));
    await pull('pause');
    held.open();
    await until(async () => (await progress()).filled === 1);
    await outlast();
    await pull('resume');
    const { filled, failures } = await result();
    assert.deepEqual([filled, failures], [3, []]);
    assert.deepEqual(fillsOf(calls), [late, last, busy, late]);
    assert.equal((await runsOf(harness.client, handle)).length, 2);
  });

  it('does not count where the run continues as new in it', async () => {
    const { held, fill } = notReadyAtFirst();
    const plan = { concurrency: 1, asksReady: true, policy } as const;
    const calls = scripted({ keys: [late, last, busy], plan, fill });
    const handle = await harness.backfill(calls, { partitionsPerRun: 2 });
    const { pull, progress, result } = chain(handle);
    await until(() => fillsOf(calls).includes(last));
    await pull('pause');
    held.open();
    await until(async () => (await runsOf(harness.client, handle)).length === 2);
    await outlast();
    assert.equal((await progress()).failed, 0);
    await pull('resume');
    const { filled, failures } = await result();
    assert.deepEqual([filled, failures], [3, []]);
  });

  it('does not count for those that hold a lane, nor is anything tried in it', async () => {
    const size = 90;
    const batches = Math.floor(MAX_WAITING / size) + 1;
    const keys = days('2020-01-01', size * batches);
    const nameOf = (i: number): string => `${keys[i * size]}..${keys[(i + 1) * size - 1]}`;
    const over = gate();
    let asked = 0;
    const calls = scripted({
      keys,
      page: keys.length,
      plan: { concurrency: 1, batch: size, asksReady: true, policy },
      batch: async ({ pipeline, keys, policy }) => {
        const result = { pipeline, rows: 1, deleted: 0, seconds: 0, warnings: [] };
        const notReady = policy.notReady === 'yield' && asked === 0;
        return keys.map((key) => ({ ...result, key, ...(notReady ? { notReady: LONG } : {}) }));
      },
      control: {
        awaitPartition: async () => {
          asked += 1;
          if (asked === 1) return await untilCancelled().finally(over.open);
          await meanwhile.end();
          return { wanted: true };
        },
      },
    });
    const meanwhile = await other(calls, nameOf(batches - 1));
    const handle = await harness.backfill(calls);
    const { pull, progress, result } = chain(handle);
    await until(() => asked === 1);
    await pull('pause');
    await over.opened;
    await outlast();
    const { running, failed } = await progress();
    assert.deepEqual([running.map(({ keys }) => keys), failed, asked], [[nameOf(batches - 1)], 0, 1]);
    await pull('resume');
    const { filled, failures } = await result();
    assert.deepEqual([filled, failures, asked], [keys.length, [], 2]);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });
});
