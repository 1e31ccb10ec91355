import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { type BackfillResult, partitionWorkflowId, type PartitionOutcome, type Progress } from '../../src/contract.js';
import { cancelled, failedAs, failureOf, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  gate,
  runsOf,
  scheduledActivities,
  type Script,
  type Scripted,
  scripted,
  until,
  untilCancelled,
  withoutTasks,
} from './scripted.js';

const KEYS = days('2024-01-01', 10);
const filled = (pipeline: string, key: string): PartitionOutcome => ({
  pipeline,
  key,
  rows: 2,
  deleted: 0,
  seconds: 0,
  warnings: [],
});

describe('a backfill in batches', () => {
  const harness = new Harness();

  async function start(script: Script, ...more: unknown[]): Promise<[WorkflowHandleWithFirstExecutionRunId, Scripted]> {
    const calls = scripted({ keys: KEYS, ...script, plan: { batch: 4, ...script.plan } });
    return [await harness.backfill(calls, ...more), calls];
  }

  const startedChildren = async (handle: WorkflowHandleWithFirstExecutionRunId): Promise<string[]> =>
    (await eventsOf(handle)).flatMap((event) => {
      const started = event.startChildWorkflowExecutionInitiatedEventAttributes;
      return started ? `${started.workflowType?.name} ${started.workflowId?.split('/').at(-1)}` : [];
    });

  it('fills neighbours by one child and one activity, and counts each of them', async () => {
    const [handle, calls] = await start({ keys: days('2024-01-01', 9), fill: async () => 3 });
    const { filled, rows, failed } = (await handle.result()) as BackfillResult;
    assert.deepEqual({ filled, rows, failed }, { filled: 9, rows: 27, failed: 0 });
    assert.deepEqual(await startedChildren(handle), [
      'partitions 2024-01-01..2024-01-04',
      'partitions 2024-01-05..2024-01-08',
      'partition 2024-01-09',
    ]);
    const batch = harness.client.workflow.getHandle(partitionWorkflowId(calls.pipeline, '2024-01-01..2024-01-04'));
    const events = await eventsOf(batch);
    assert.deepEqual(scheduledActivities(events), ['fillBatch']);
    assert.equal(withoutTasks(events).length, 5);
    const { staticSummary } = await batch.describe().then(({ staticSummary }) => ({ staticSummary: staticSummary() }));
    assert.equal(await staticSummary, `${calls.pipeline} 2024-01-01..2024-01-04`);
    // As many seconds as its partitions may take, and as long in all as one may be tried.
    const times = events.find(
      (event) => event.activityTaskScheduledEventAttributes,
    )?.activityTaskScheduledEventAttributes;
    assert.equal(Number(times?.startToCloseTimeout?.seconds), 4 * 60 + 30);
    assert.equal(Number(times?.scheduleToCloseTimeout?.seconds), 600);
  });

  it('names what runs by its range, whatever the order, and runs `concurrency` children at once', async () => {
    const hold = gate();
    const [handle] = await start({
      keys: [...KEYS].reverse(),
      plan: { concurrency: 2 },
      batch: async ({ pipeline, keys }) => {
        await hold.opened;
        return keys.map((key) => filled(pipeline, key));
      },
    });
    await until(async () => (await handle.query<Progress>('progress')).running.length === 2);
    assert.deepEqual(
      (await handle.query<Progress>('progress')).running.map(({ keys }) => keys),
      ['2024-01-07..2024-01-10', '2024-01-03..2024-01-06'],
    );
    hold.open();
    assert.equal(((await handle.result()) as BackfillResult).filled, 10);
  });

  it('takes each partition’s own end: filled, failed', async () => {
    const [handle] = await start({
      batch: async ({ pipeline, keys }) =>
        keys.map((key) =>
          key === '2024-01-03' ? { key, type: 'CheckFailed', message: 'no rows' } : filled(pipeline, key),
        ),
    });
    const failure = await failureOf(handle);
    assert.equal(failure.type, 'BackfillIncomplete');
    assert.match(failure.message, /1 of 10 partitions .*2024-01-03 \(CheckFailed\)/);
    const { filled: count, failures } = failure.details?.[0] as BackfillResult;
    assert.equal(count, 9);
    assert.deepEqual(failures, [{ key: '2024-01-03', type: 'CheckFailed', message: 'no rows' }]);
  });

  it('continues as new between batches, and fills each key once', async () => {
    const [handle, calls] = await start({ keys: days('2024-01-01', 23), page: 8 }, { partitionsPerRun: 8 });
    const { filled } = (await harness.client.workflow.getHandle(handle.workflowId).result()) as BackfillResult;
    assert.equal(filled, 23);
    const ranges = calls.calls.filter((call) => call.startsWith('fill')).sort();
    assert.deepEqual(ranges, [
      'fillBatch 2024-01-01..2024-01-04',
      'fillBatch 2024-01-05..2024-01-08',
      'fillBatch 2024-01-09..2024-01-12',
      'fillBatch 2024-01-13..2024-01-16',
      'fillBatch 2024-01-17..2024-01-20',
      'fillBatch 2024-01-21..2024-01-23',
    ]);
    assert.ok((await runsOf(harness.client, handle)).length > 1);
    assert.ok(calls.requests('nextBatches').every(({ batch }) => batch === 4));
  });

  it('cancelled, ends only once the ledger has said that nothing of the batch is left, and counts what it had filled', async () => {
    const ended = gate();
    const [handle, calls] = await start({
      keys: days('2024-01-01', 4),
      batch: untilCancelled,
      control: {
        endBatch: async ({ pipeline, keys }) => {
          await ended.opened;
          return { outcomes: keys.slice(0, 1).map((key) => filled(pipeline, key)) };
        },
      },
    });
    await until(() => calls.calls.some((call) => call.startsWith('fillBatch')));
    await handle.cancel();
    await until(() => calls.requests('endBatch').length === 1);
    assert.equal(await harness.childStatus(calls, '2024-01-01..2024-01-04'), 'RUNNING');
    ended.open();
    await assert.rejects(handle.result(), cancelled);
    assert.equal(await harness.childStatus(calls, '2024-01-01..2024-01-04'), 'CANCELLED');
    assert.equal(calls.requests('endBatch')[0]?.failure, undefined);
    const [last] = calls.requests('endBackfill');
    assert.deepEqual([last?.outcome, last?.filled, last?.failed], ['cancelled', 1, 0]);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('given up, has the rest recorded as failed', async () => {
    const keys = days('2024-01-01', 4);
    const [handle, calls] = await start({
      keys,
      batch: async () => {
        throw ApplicationFailure.nonRetryable('no rights', 'PermissionDenied', { attempt: 2 });
      },
      control: {
        endBatch: async ({ pipeline, failure }) => ({
          outcomes: keys.map((key, i) => (i < 1 || !failure ? filled(pipeline, key) : { key, ...failure })),
        }),
      },
    });
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed, result.failures[0]?.type], [1, 3, 'PermissionDenied']);
    assert.deepEqual(calls.requests('endBatch'), [
      {
        pipeline: calls.pipeline,
        ledger: 'l',
        keys,
        run: calls.requests('endBatch')[0]?.run,
        failure: { type: 'PermissionDenied', message: 'no rights', attempt: 2 },
      },
    ]);
    assert.equal(await harness.childStatus(calls, '2024-01-01..2024-01-04'), 'COMPLETED');
  });

  it('whose child is terminated asks the ledger what became of it', async () => {
    const keys = days('2024-01-01', 4);
    const [handle, calls] = await start({
      keys,
      batch: untilCancelled,
      control: {
        endBatch: async ({ pipeline, failure }) => ({
          outcomes: keys.map((key, i) => (i < 2 || !failure ? filled(pipeline, key) : { key, ...failure })),
        }),
      },
    });
    await until(() => calls.calls.some((call) => call.startsWith('fillBatch')));
    const child = harness.client.workflow.getHandle(partitionWorkflowId(calls.pipeline, '2024-01-01..2024-01-04'));
    const { runId } = await child.describe();
    await child.terminate();
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [2, 2]);
    assert.equal(calls.requests('endBatch')[0]?.run, runId);
    assert.equal(calls.requests('endBatch')[0]?.failure?.type, 'Unexpected');
  });

  it('waits for another run of the same range, then fills what it left', async () => {
    const keys = days('2024-01-01', 4);
    const held = gate();
    let first = true;
    const calls = scripted({
      keys,
      plan: { batch: 4, only: ['missing'] },
      batch: async ({ pipeline, keys }) => {
        if (first) {
          first = false;
          await held.opened;
        }
        return keys.map((key) => filled(pipeline, key));
      },
      control: {
        awaitPartitions: async ({ runs }) => {
          held.open();
          await other.result();
          // The second is no longer missing.
          return { ended: runs.map(({ id }) => ({ id, wantedKeys: [keys[0]!, keys[2]!, keys[3]!] })) };
        },
      },
    });
    const { pipeline } = calls;
    const other = await harness.backfill(calls);
    await until(() => calls.calls.some((call) => call.startsWith('fillBatch')));
    const { taskQueue } = await other.describe();
    const handle = await harness.client.workflow.start('backfill', {
      taskQueue,
      workflowId: `backfill/${pipeline}/second`,
      args: [{ pipeline }],
    });
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.filled, result.skipped], [3, 1]);
    const [asked] = calls.requests('awaitPartitions');
    assert.deepEqual(asked?.runs, [{ id: partitionWorkflowId(pipeline, '2024-01-01..2024-01-04'), keys }]);
    assert.deepEqual(calls.calls.filter((call) => call.startsWith('fill')).sort(), [
      'fillBatch 2024-01-01..2024-01-04',
      'fillBatch 2024-01-03..2024-01-04',
      'fillPartition 2024-01-01',
    ]);
  });

  it('is started by no one but a backfill', async () => {
    const handle = await harness.start('partitions', scripted(), [{ pipeline: 'p', keys: ['2024-01-01'] }]);
    await assert.rejects(handle.result(), failedAs('InvalidInput', 'start `backfill`'));
  });
});
