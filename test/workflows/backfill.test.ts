import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { type BackfillResult, partitionWorkflowId, type Progress } from '../../src/contract.js';
import { failureOf, Harness } from './harness.js';
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
  withoutTasks,
} from './scripted.js';

describe('backfill', () => {
  const harness = new Harness();

  async function start(script: Script, ...more: unknown[]): Promise<[WorkflowHandleWithFirstExecutionRunId, Scripted]> {
    const calls = scripted(script);
    return [await harness.backfill(calls, ...more), calls];
  }

  it('fills each key by a child of its own, at most `concurrency` at once', async () => {
    const keys = days('2024-01-01', 10);
    let now = 0;
    let most = 0;
    const three = gate();
    const [handle, calls] = await start({
      keys,
      plan: { first: keys[0], last: keys[9], notes: ['one left out'] },
      fill: async () => {
        most = Math.max(most, ++now);
        if (now === 3) three.open();
        await three.opened;
        // Time for a fourth to come, were there one.
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
    for (const key of keys) assert.equal(await harness.childStatus(calls, key), 'COMPLETED');
    const fills = calls.calls.filter((call) => call.startsWith('fillPartition'));
    assert.deepEqual(
      fills.sort(),
      keys.map((key) => `fillPartition ${key}`),
    );
    assert.deepEqual(calls.requests('endBackfill'), [
      {
        pipeline: calls.pipeline,
        ledger: 'l',
        run: 'run',
        outcome: 'done',
        filled: 10,
        failed: 0,
        skipped: 0,
        rows: 20,
      },
    ]);
  });

  it('goes on when a child fails while others run, and says so at the end', async () => {
    const keys = days('2024-01-01', 8);
    const others = gate();
    const [handle, calls] = await start({
      keys,
      fill: async (key) => {
        if (key === '2024-01-02') throw ApplicationFailure.nonRetryable('no rows at all', 'CheckFailed');
        if (key === '2024-01-01') await others.opened;
      },
    });
    await until(() => calls.requests('recordFailure').length === 1);
    await until(async () => (await handle.query<Progress>('progress')).filled === 6);
    const progress = await handle.query<Progress>('progress');
    assert.deepEqual(
      progress.running.map(({ keys }) => keys),
      ['2024-01-01'],
    );
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
    const [handle] = await start({
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
    const [handle, calls] = await start(
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
    const statuses = (await runsOf(harness.client, handle)).map(({ status }) => status);
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
    const [handle] = await start({ keys }, { partitionsPerRun: 30 });
    await handle.result();
    const [, second] = await runsOf(harness.client, handle);
    const [begun] = await eventsOf(harness.client.workflow.getHandle(handle.workflowId, second?.runId));
    const payloads = begun?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
    const text = payloads.map(({ data }) => Buffer.from(data ?? []).toString()).join();
    assert.equal(payloads.length, 2);
    assert.ok(text.length < 1_000, text);
  });

  it('ends as the failure that stops its list, once what runs has ended', async () => {
    const held = gate();
    const [handle, calls] = await start({
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
    assert.equal(await harness.childStatus(calls, '2024-01-01'), 'COMPLETED');
    assert.deepEqual(calls.requests('endBackfill')[0]?.outcome, 'failed');
  });

  it('hands its plan everything it was started with, and ends as the plan fails', async () => {
    const refuse = async () => {
      throw ApplicationFailure.nonRetryable('from is 5', 'InvalidInput');
    };
    const [handle, calls] = await start({ control: { planBackfill: refuse } }, { carried: { plan: 'forged' } }, 7);
    const failure = await failureOf(handle);
    assert.deepEqual([failure.type, failure.message], ['InvalidInput', 'from is 5']);
    const [request] = calls.requests('planBackfill');
    assert.deepEqual(request?.arguments, [{ pipeline: calls.pipeline }, { carried: { plan: 'forged' } }, 7]);
    assert.deepEqual(calls.calls, ['planBackfill']);
  });

  it('with dryRun returns the plan and does nothing more', async () => {
    const keys = days('2024-01-01', 2);
    const [handle, calls] = await start({ plan: { total: 2, dryRun: { keys } } });
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.total, result.filled, result.keys], [2, 0, keys]);
    assert.deepEqual(calls.calls, ['planBackfill']);
  });

  it('is done at once where nothing is to do', async () => {
    const [handle, calls] = await start({ keys: [] });
    assert.equal(((await handle.result()) as BackfillResult).total, 0);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'done');
  });

  it('ends though its last word cannot be recorded', async () => {
    const [handle] = await start({
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
    const [handle, calls] = await start({
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
    const child = await harness.client.workflow.getHandle(partitionWorkflowId(calls.pipeline, keys[0]!)).describe();
    assert.equal(await child.staticSummary(), `${calls.pipeline} 2024-01-01`);
    assert.equal(child.priority?.priorityKey, 2);
    const childEvents = await eventsOf(harness.client.workflow.getHandle(child.workflowId));
    assert.equal(withoutTasks(childEvents).length, 5);
  });
});
