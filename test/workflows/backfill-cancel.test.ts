import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { cancelled, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  fillsOf,
  gate,
  runsOf,
  type Script,
  type Scripted,
  scripted,
  until,
  untilCancelled,
} from './scripted.js';

describe('cancelling a backfill', () => {
  const harness = new Harness();

  async function start(script: Script, ...more: unknown[]): Promise<[WorkflowHandleWithFirstExecutionRunId, Scripted]> {
    const calls = scripted(script);
    return [await harness.backfill(calls, ...more), calls];
  }

  it('cancelled, starts nothing more and ends only after every child has', async () => {
    const keys = days('2024-01-01', 20);
    const [handle, calls] = await start({ keys, fill: untilCancelled });
    await until(() => calls.calls.filter((call) => call.startsWith('fillPartition')).length === 3);
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    for (const key of keys.slice(0, 3)) assert.equal(await harness.childStatus(calls, key), 'CANCELLED');
    assert.equal(await harness.childStatus(calls, keys[3]!), 'never started');
    assert.equal(calls.requests('endFill').length, 3);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'cancelled');
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('cancelled while one lane fills and another waits for a page, waits for the rollback', async () => {
    const keys = days('2024-01-01', 9);
    const rollback = gate();
    const [handle, calls] = await start({
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
    assert.equal(await harness.childStatus(calls, '2024-01-01'), 'CANCELLED');
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('cancelled between two runs, ends CANCELLED and fills no more', async () => {
    const keys = days('2024-01-01', 40);
    let cancelling: Promise<unknown> | undefined;
    const [handle, calls] = await start(
      {
        keys,
        plan: { concurrency: 4 },
        fill: async () => {
          // Lands while the first run drains or the second begins.
          const begun = fillsOf(calls).length;
          if (begun >= 8) cancelling ??= handle.cancel();
          // However long it is on its way, they are not all filled before.
          if (begun >= 20) await cancelling;
        },
      },
      { partitionsPerRun: 8 },
    );
    await assert.rejects(harness.client.workflow.getHandle(handle.workflowId).result(), cancelled);
    await cancelling;
    const statuses = (await runsOf(harness.client, handle)).map(({ status }) => status);
    assert.equal(statuses.at(-1), 'CANCELLED', statuses.join());
    assert.ok(calls.calls.filter((call) => call.startsWith('fillPartition')).length < keys.length);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'cancelled');
  });

  it('counts failures after a cancel as cancelled, and ends the chain CANCELLED', async () => {
    const keys = days('2024-01-01', 6);
    const [handle, calls] = await start({
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
});
