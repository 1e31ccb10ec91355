import assert from 'node:assert/strict';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { type BackfillResult, partitionWorkflowId } from '../../src/contract.js';
import { cancelled, failureOf, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  gate,
  type Script,
  type Scripted,
  scripted,
  until,
  untilCancelled,
} from './scripted.js';

interface Busy {
  readonly handle: WorkflowHandleWithFirstExecutionRunId;
  readonly calls: Scripted;
  /** Lets the other run's fill end. */
  readonly release: () => void;
  /** Resolves when the other run has ended. */
  readonly other: Promise<unknown>;
}

describe('a partition that another run fills', () => {
  const harness = new Harness();

  const [busy, free] = days('2024-01-01', 2) as [string, string];

  async function startBusy(script: Script): Promise<Busy> {
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
    const taskQueue = await harness.workers(calls);
    const other = await harness.client.workflow.start('partition', {
      taskQueue,
      workflowId: partitionWorkflowId(calls.pipeline, busy),
      args: [{ pipeline: calls.pipeline, key: busy }],
    });
    await until(() => calls.calls.includes(`fillPartition ${busy}`));
    const handle = await harness.client.workflow.start('backfill', {
      taskQueue,
      workflowId: `backfill/${calls.pipeline}`,
      args: [{ pipeline: calls.pipeline }],
    });
    return { handle, calls, release: held.open, other: other.result() };
  }

  it('is waited for, and then filled', async () => {
    const waited = gate();
    const { handle, calls, release, other } = await startBusy({
      control: {
        awaitPartitions: async ({ runs }) => {
          waited.open();
          await other;
          return { ended: runs.map(({ id, keys }) => ({ id, wantedKeys: keys })) };
        },
      },
    });
    await waited.opened;
    release();
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.filled, result.rows], [2, 10]);
    assert.deepEqual(calls.requests('awaitPartitions'), [
      {
        pipeline: calls.pipeline,
        ledger: 'l',
        runs: [{ id: partitionWorkflowId(calls.pipeline, busy), keys: [busy] }],
        fingerprint: 'f',
      },
    ]);
    assert.deepEqual(calls.requests('awaitPartition'), []);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('is skipped after the wait where nothing is left to do', async () => {
    const { handle, release, other } = await startBusy({
      control: { awaitPartitions: async ({ runs }) => ({ ended: runs.map(({ id }) => ({ id, wantedKeys: [] })) }) },
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
        awaitPartitions: async ({ runs }) => {
          waits += 1;
          if (waits === 3) {
            release();
            await other;
          }
          return { ended: runs.map(({ id, keys }) => ({ id, wantedKeys: keys })) };
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
    const { handle, calls, release, other } = await startBusy({ control: { awaitPartitions: untilCancelled } });
    await until(() => calls.calls.includes('awaitPartitions'));
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    assert.equal(await harness.childStatus(calls, busy), 'RUNNING');
    release();
    await other;
  });
});
