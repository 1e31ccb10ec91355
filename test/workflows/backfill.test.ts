import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import { type Client, WorkflowFailedError, type WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { type BackfillResult, partitionWorkflowId, type Progress } from '../../src/contract.js';
import { type InProcessWorkers, startWorkers, testClient } from '../support/workflow.js';
import {
  days,
  eventsOf,
  failedTasks,
  gate,
  runsOf,
  type Script,
  type Scripted,
  scripted,
  until,
  untilCancelled,
  withoutTasks,
} from './scripted.js';

interface Started {
  readonly handle: WorkflowHandleWithFirstExecutionRunId;
  readonly calls: Scripted;
  readonly taskQueue: string;
}

describe('backfill', () => {
  let client: Client;
  const workers: InProcessWorkers[] = [];

  before(async () => (client = await testClient()));
  afterEach(async () => {
    for (const running of workers.splice(0)) await running.stop();
  });
  after(() => client.connection.close());

  async function start(script: Script, ...more: unknown[]): Promise<Started> {
    const calls = scripted(script);
    const running = await startWorkers(calls);
    workers.push(running);
    const { taskQueue } = running;
    const handle = await client.workflow.start('backfill', {
      taskQueue,
      workflowId: `backfill/${calls.pipeline}/${randomUUID()}`,
      args: [{ pipeline: calls.pipeline }, ...more],
    });
    return { handle, calls, taskQueue };
  }

  function childStatus(calls: Scripted, key: string): Promise<string> {
    const child = client.workflow.getHandle(partitionWorkflowId(calls.pipeline, key));
    return child.describe().then(
      ({ status }) => status.name,
      () => 'never started',
    );
  }

  it('fills each key by a child of its own, at most `concurrency` at once', async () => {
    const keys = days('2024-01-01', 10);
    let now = 0;
    let most = 0;
    const { handle, calls } = await start({
      keys,
      plan: { first: keys[0], last: keys[9], notes: ['one left out'] },
      fill: async () => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 50));
        now -= 1;
        return 2;
      },
    });
    assert.deepEqual(await handle.result(), {
      pipeline: calls.pipeline,
      first: keys[0],
      last: keys[9],
      total: 10,
      filled: 10,
      failed: 0,
      skipped: 0,
      rows: 20,
      failures: [],
      notes: ['one left out'],
    });
    assert.equal(most, 3);
    for (const key of keys) assert.equal(await childStatus(calls, key), 'COMPLETED');
    const fills = calls.calls.filter((call) => call.startsWith('fillPartition'));
    assert.deepEqual(
      fills.sort(),
      keys.map((key) => `fillPartition ${key}`),
    );
    assert.deepEqual(calls.requests('endBackfill'), [
      { pipeline: calls.pipeline, run: 'run', outcome: 'done', filled: 10, failed: 0, skipped: 0, rows: 20 },
    ]);
  });

  it('goes on when a child fails while others run, and says so at the end', async () => {
    const keys = days('2024-01-01', 8);
    const others = gate();
    const { handle, calls } = await start({
      keys,
      fill: async (key) => {
        if (key === '2024-01-02') throw ApplicationFailure.nonRetryable('no rows at all', 'CheckFailed');
        if (key === '2024-01-01') await others.opened;
      },
    });
    await until(() => calls.requests('recordFailure').length === 1);
    await until(async () => (await handle.query<Progress>('progress')).filled === 6);
    const progress = await handle.query<Progress>('progress');
    assert.deepEqual(progress.running, ['2024-01-01']);
    assert.deepEqual(progress.failures, [{ key: '2024-01-02', type: 'CheckFailed', message: 'no rows at all' }]);
    assert.equal(progress.phase, 'filling');
    others.open();

    const failure = await failureOf(handle);
    assert.equal(failure.type, 'BackfillIncomplete');
    assert.match(failure.message, /1 of 8 partitions of .* failed: 2024-01-02 \(CheckFailed\).*only: \["failed"\]/);
    const result = failure.details?.[0] as BackfillResult;
    assert.equal(result.filled, 7);
    assert.equal(result.failed, 1);
    assert.equal(result.failures[0]?.key, '2024-01-02');
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'incomplete');
  });

  it('lists ten failures at most, each cut short, and counts them all', async () => {
    const keys = days('2024-01-01', 12);
    const { handle } = await start({
      keys,
      plan: { concurrency: 12 },
      fill: async () => {
        throw ApplicationFailure.nonRetryable('x'.repeat(5_000), 'DataError');
      },
    });
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.equal(result.failed, 12);
    assert.equal(result.failures.length, 10);
    assert.ok(result.failures.every(({ message }) => message.length === 300));
  });

  it('continues as new with its cursor and counts, and fills each key once', async () => {
    const keys = days('2024-01-01', 23);
    const { handle, calls } = await start(
      {
        keys,
        page: 4,
        fill: async (key) => {
          if (key === '2024-01-03') throw ApplicationFailure.nonRetryable('bad', 'DataError');
          return 2;
        },
      },
      { partitionsPerRun: 5 },
    );
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual(
      { filled: result.filled, failed: result.failed, total: result.total, rows: result.rows },
      { filled: 22, failed: 1, total: 23, rows: 44 },
    );
    assert.deepEqual(result.failures, [{ key: '2024-01-03', type: 'DataError', message: 'bad' }]);
    const fills = calls.calls.filter((call) => call.startsWith('fillPartition'));
    assert.deepEqual(
      fills.sort(),
      keys.map((key) => `fillPartition ${key}`),
    );
    const statuses = (await runsOf(client, handle.workflowId)).map(({ status }) => status);
    assert.deepEqual(statuses.at(-1), 'FAILED');
    assert.ok(
      statuses.length >= 4 && statuses.slice(0, -1).every((status) => status === 'CONTINUED_AS_NEW'),
      statuses.join(),
    );
    assert.equal(calls.requests('planBackfill').length, 1);
    assert.equal(calls.requests('endBackfill').length, 1);
  });

  it('carries a bounded state: the second run’s input holds no list of keys', async () => {
    const keys = days('2024-01-01', 40);
    const { handle } = await start({ keys }, { partitionsPerRun: 30 });
    await handle.result();
    const [, second] = await runsOf(client, handle.workflowId);
    const [begun] = await eventsOf(client.workflow.getHandle(handle.workflowId, second?.runId));
    const payloads = begun?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
    const text = payloads.map(({ data }) => Buffer.from(data ?? []).toString()).join();
    assert.equal(payloads.length, 2);
    assert.ok(text.length < 1_000, text);
  });

  it('cancelled, starts nothing more and ends only after every child has', async () => {
    const keys = days('2024-01-01', 20);
    const { handle, calls } = await start({ keys, fill: untilCancelled });
    await until(() => calls.calls.filter((call) => call.startsWith('fillPartition')).length === 3);
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    for (const key of keys.slice(0, 3)) assert.equal(await childStatus(calls, key), 'CANCELLED');
    assert.equal(await childStatus(calls, keys[3]!), 'never started');
    assert.equal(calls.requests('endFill').length, 3);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'cancelled');
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('cancelled while one lane fills and another waits for a page, waits for the rollback', async () => {
    const keys = days('2024-01-01', 9);
    const rollback = gate();
    const { handle, calls } = await start({
      keys,
      page: 2,
      plan: { concurrency: 2 },
      control: {
        nextKeys: untilCancelled,
        endFill: async () => {
          await rollback.opened;
          return undefined;
        },
      },
      fill: async (key) => {
        if (key === '2024-01-01') await untilCancelled();
      },
    });
    await until(() => calls.calls.includes('nextKeys'));
    await handle.cancel();
    await until(() => calls.requests('endFill').length === 1);
    assert.equal((await handle.describe()).status.name, 'RUNNING');
    rollback.open();
    await assert.rejects(handle.result(), cancelled);
    assert.equal(await childStatus(calls, '2024-01-01'), 'CANCELLED');
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('counts failures after a cancel as cancelled, and ends the chain CANCELLED', async () => {
    const keys = days('2024-01-01', 6);
    const { handle, calls } = await start({
      keys,
      fill: async () => {
        await untilCancelled().catch(() => undefined);
        throw ApplicationFailure.nonRetryable('the worker broke', 'DataError');
      },
    });
    await until(() => calls.calls.filter((call) => call.startsWith('fillPartition')).length === 3);
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    assert.deepEqual(calls.requests('recordFailure'), []);
    assert.equal(calls.requests('endBackfill')[0]?.failed, 0);
  });

  it('cancelled between two runs, ends CANCELLED and fills no more', async () => {
    const keys = days('2024-01-01', 40);
    let cancelling: Promise<unknown> | undefined;
    const { handle, calls } = await start(
      {
        keys,
        plan: { concurrency: 4 },
        fill: async () => {
          // Lands while the first run drains or the second begins.
          if (calls.calls.filter((call) => call.startsWith('fillPartition')).length >= 8)
            cancelling ??= handle.cancel();
        },
      },
      { partitionsPerRun: 8 },
    );
    await assert.rejects(client.workflow.getHandle(handle.workflowId).result(), cancelled);
    await cancelling;
    const statuses = (await runsOf(client, handle.workflowId)).map(({ status }) => status);
    assert.equal(statuses.at(-1), 'CANCELLED', statuses.join());
    assert.ok(calls.calls.filter((call) => call.startsWith('fillPartition')).length < keys.length);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'cancelled');
  });

  describe('a partition that another run fills', () => {
    const [busy, free] = days('2024-01-01', 2) as [string, string];

    async function startBusy(
      script: Script,
    ): Promise<Started & { readonly release: () => void; readonly other: Promise<unknown> }> {
      const held = gate();
      let first = true;
      const calls = scripted({
        keys: [busy, free],
        ...script,
        fill: async (key) => {
          if (key !== busy || !first) return 5;
          first = false;
          await held.opened;
          return 1;
        },
      });
      const running = await startWorkers(calls);
      workers.push(running);
      const { taskQueue } = running;
      const other = await client.workflow.start('partition', {
        taskQueue,
        workflowId: partitionWorkflowId(calls.pipeline, busy),
        args: [{ pipeline: calls.pipeline, key: busy }],
      });
      await until(() => calls.calls.includes(`fillPartition ${busy}`));
      const handle = await client.workflow.start('backfill', {
        taskQueue,
        workflowId: `backfill/${calls.pipeline}`,
        args: [{ pipeline: calls.pipeline }],
      });
      return { handle, calls, taskQueue, release: held.open, other: other.result() };
    }

    it('is waited for, and then filled', async () => {
      const waited = gate();
      const { handle, calls, release, other } = await startBusy({
        control: {
          awaitPartition: async () => {
            waited.open();
            await other;
            return { wanted: true };
          },
        },
      });
      await waited.opened;
      release();
      const result = (await handle.result()) as BackfillResult;
      assert.deepEqual([result.filled, result.rows], [2, 10]);
      assert.deepEqual(calls.requests('awaitPartition'), [
        { pipeline: calls.pipeline, key: busy, id: partitionWorkflowId(calls.pipeline, busy), fingerprint: 'f' },
      ]);
      assert.deepEqual(failedTasks(await eventsOf(handle)), []);
    });

    it('is skipped after the wait where nothing is left to do', async () => {
      const { handle, release, other } = await startBusy({
        control: { awaitPartition: async () => ({ wanted: false }) },
      });
      const result = (await handle.result()) as BackfillResult;
      assert.deepEqual([result.filled, result.skipped], [1, 1]);
      release();
      await other;
    });

    it('is waited for again where another waiter was faster', async () => {
      let waits = 0;
      const { handle, release, other } = await startBusy({
        control: {
          awaitPartition: async () => {
            waits += 1;
            if (waits === 3) {
              release();
              await other;
            }
            return { wanted: true };
          },
        },
      });
      const result = (await handle.result()) as BackfillResult;
      assert.equal(result.filled, 2);
      assert.equal(waits, 3);
    });

    it('is skipped and counted with onBusy: skip', async () => {
      const { handle, release, other } = await startBusy({ plan: { onBusy: 'skip' } });
      const result = (await handle.result()) as BackfillResult;
      assert.deepEqual([result.filled, result.skipped, result.failed], [1, 1, 0]);
      release();
      await other;
    });

    it('fails as Busy with onBusy: fail, and the others are filled', async () => {
      const { handle, release, other } = await startBusy({ plan: { onBusy: 'fail' } });
      const result = (await failureOf(handle)).details?.[0] as BackfillResult;
      assert.deepEqual([result.filled, result.failed], [1, 1]);
      assert.equal(result.failures[0]?.type, 'Busy');
      release();
      await other;
    });

    it('holds up no cancel', async () => {
      const { handle, calls, release, other } = await startBusy({ control: { awaitPartition: untilCancelled } });
      await until(() => calls.calls.includes(`awaitPartition ${busy}`));
      await handle.cancel();
      await assert.rejects(handle.result(), cancelled);
      assert.equal(await childStatus(calls, busy), 'RUNNING');
      release();
      await other;
    });
  });

  it('ends as the failure that stops its list, once what runs has ended', async () => {
    const held = gate();
    const { handle, calls } = await start({
      keys: days('2024-01-01', 5),
      page: 2,
      plan: { concurrency: 2 },
      control: {
        nextKeys: async () => {
          throw ApplicationFailure.nonRetryable('the list is gone', 'PermissionDenied');
        },
      },
      fill: async (key) => {
        if (key === '2024-01-01') await held.opened;
      },
    });
    await until(() => calls.calls.includes('nextKeys'));
    assert.equal((await handle.describe()).status.name, 'RUNNING');
    held.open();
    const failure = await failureOf(handle);
    assert.deepEqual([failure.type, failure.message], ['PermissionDenied', 'the list is gone']);
    assert.equal(await childStatus(calls, '2024-01-01'), 'COMPLETED');
    assert.deepEqual(calls.requests('endBackfill')[0]?.outcome, 'failed');
  });

  it('hands its plan everything it was started with, and ends as the plan fails', async () => {
    const refuse = async () => {
      throw ApplicationFailure.nonRetryable('from is 5', 'InvalidInput');
    };
    const { handle, calls } = await start({ control: { planBackfill: refuse } }, { carried: { plan: 'forged' } }, 7);
    const failure = await failureOf(handle);
    assert.deepEqual([failure.type, failure.message], ['InvalidInput', 'from is 5']);
    const [request] = calls.requests('planBackfill');
    assert.deepEqual(request?.arguments, [{ pipeline: calls.pipeline }, { carried: { plan: 'forged' } }, 7]);
    assert.deepEqual(calls.calls, ['planBackfill']);
  });

  it('with dryRun returns the plan and does nothing more', async () => {
    const keys = days('2024-01-01', 2);
    const { handle, calls } = await start({ plan: { total: 2, dryRun: { keys } } });
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.total, result.filled, result.keys], [2, 0, keys]);
    assert.deepEqual(calls.calls, ['planBackfill']);
  });

  it('is done at once where nothing is to do', async () => {
    const { handle, calls } = await start({ keys: [] });
    assert.equal(((await handle.result()) as BackfillResult).total, 0);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'done');
  });

  it('ends though its last word cannot be recorded', async () => {
    const { handle } = await start({
      keys: days('2024-01-01', 1),
      control: {
        endBackfill: async () => {
          throw ApplicationFailure.nonRetryable('no', 'PermissionDenied');
        },
      },
    });
    assert.equal(((await handle.result()) as BackfillResult).filled, 1);
  });

  it('writes three events a partition and nothing else that grows, and tells of itself and its children', async () => {
    const keys = days('2024-01-01', 60);
    const { handle, calls } = await start({
      keys,
      plan: { concurrency: 10, priority: 2, first: keys[0], last: keys[59] },
    });
    await handle.result();
    const events = await eventsOf(handle);
    // How many workflow tasks it takes is up to the server's timing; all else is 3 a child, 3 an activity, start and end.
    assert.equal(withoutTasks(events).length, 3 * keys.length + 3 + 3 + 2);
    const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    assert.match(
      metadata.currentDetails ?? '',
      new RegExp(`\\*\\*${calls.pipeline}\\*\\*, 2024-01-01 to 2024-02-29 \\(ended\\)`),
    );
    assert.match(metadata.currentDetails ?? '', /\| 60 \| 60 \| 0 \| 0 \| 0 \| 60 \|/);
    const child = await client.workflow.getHandle(partitionWorkflowId(calls.pipeline, keys[0]!)).describe();
    assert.equal(await child.staticSummary(), `${calls.pipeline} 2024-01-01`);
    assert.equal(child.priority?.priorityKey, 2);
    const childEvents = await eventsOf(client.workflow.getHandle(child.workflowId));
    assert.equal(childEvents.length, 11);
  });
});

async function failureOf(handle: { result(): Promise<unknown> }): Promise<ApplicationFailure> {
  try {
    await handle.result();
  } catch (error) {
    assert.ok(error instanceof WorkflowFailedError, String(error));
    assert.ok(error.cause instanceof ApplicationFailure, String(error.cause));
    return error.cause;
  }
  assert.fail('it did not fail');
}

function cancelled(error: unknown): true {
  assert.ok(error instanceof WorkflowFailedError, String(error));
  assert.ok(error.cause instanceof CancelledFailure, String(error.cause));
  return true;
}
