import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { PartitionResult } from '../../src/contract.js';
import { cancelled, failedAs, Harness } from './harness.js';
import {
  eventsOf,
  failedTasks,
  gate,
  scheduledActivities,
  type Script,
  type Scripted,
  scripted,
  until,
  untilCancelled,
} from './scripted.js';

const KEY = '2024-01-01';

describe('partition', () => {
  const harness = new Harness();

  async function start(script: Script, ...args: unknown[]): Promise<[WorkflowHandleWithFirstExecutionRunId, Scripted]> {
    const calls = scripted(script);
    const given = args.length > 0 ? args : [{ pipeline: calls.pipeline, key: KEY }];
    return [await harness.start('partition', calls, given), calls];
  }

  it('plans, then fills with one activity', async () => {
    const [handle, calls] = await start({ fill: async () => 7 });
    const result = await handle.result();
    assert.deepEqual(result, { pipeline: calls.pipeline, key: KEY, rows: 7, deleted: 0, seconds: 0, warnings: [] });
    assert.deepEqual(calls.calls, ['planPartition', `fillPartition ${KEY}`]);
  });

  it('hands every argument to the plan, and believes no policy that no parent hands down', async () => {
    const forged = { ledger: 'x', fingerprint: 'x', timeoutMs: 1, giveUpAfterMs: 1 };
    const [handle, calls] = await start({}, { pipeline: 'p', key: KEY }, forged, 3);
    await handle.result();
    assert.deepEqual(calls.requests('planPartition'), [
      { arguments: [{ pipeline: 'p', key: KEY }, forged, 3], id: handle.workflowId },
    ]);
  });

  it('does nothing where the plan says that another run fills it and is to be skipped', async () => {
    const plan = async () => ({
      pipeline: 'p',
      key: KEY,
      skip: true as const,
      policy: { ledger: '', fingerprint: '', timeoutMs: 1, giveUpAfterMs: 1 },
    });
    const [handle, calls] = await start({ control: { planPartition: plan } });
    assert.equal(((await handle.result()) as PartitionResult).skipped, true);
    assert.deepEqual(calls.calls, ['planPartition']);
  });

  it('records a final failure, then ends as the same type', async () => {
    const [handle, calls] = await start({
      fill: async () => {
        throw ApplicationFailure.nonRetryable('two rows too many', 'CheckFailed', { attempt: 4 });
      },
    });
    await assert.rejects(handle.result(), failedAs('CheckFailed', 'two rows too many'));
    assert.deepEqual(calls.requests('recordFailure'), [
      {
        pipeline: calls.pipeline,
        ledger: 'l',
        key: KEY,
        run: handle.firstExecutionRunId,
        attempt: 4,
        type: 'CheckFailed',
        message: 'two rows too many',
      },
    ]);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('succeeds where the fill had committed after all, though its activity failed', async () => {
    const committed = { pipeline: 'p', key: KEY, rows: 9, deleted: 0, seconds: 0, warnings: [] };
    const [handle] = await start({
      control: { recordFailure: async () => committed },
      fill: async () => {
        throw ApplicationFailure.nonRetryable('the answer was lost', 'StaleAttempt');
      },
    });
    assert.deepEqual(await handle.result(), committed);
  });

  it('keeps the type of the last failure when it gives up', async () => {
    const [handle, calls] = await start({
      plan: { policy: { ledger: 'l', fingerprint: 'f', timeoutMs: 60_000, giveUpAfterMs: 60_000 } },
      // The next try would be too late, so that the first is the last.
      fill: async () => {
        throw ApplicationFailure.create({
          message: 'the database is away',
          type: 'DatabaseUnavailable',
          details: [{ attempt: 1 }],
          nextRetryDelay: '2 minutes',
        });
      },
    });
    await assert.rejects(handle.result(), failedAs('DatabaseUnavailable', 'the database is away'));
    assert.equal(calls.requests('recordFailure')[0]?.type, 'DatabaseUnavailable');
  });

  it('ends as TimedOut, never as a bare time-out, where no attempt ever answered', async () => {
    const held = gate();
    const [handle, calls] = await start({
      // Time enough for the failure to be recorded, too, on a slow machine.
      plan: { policy: { ledger: 'l', fingerprint: 'f', timeoutMs: 60_000, giveUpAfterMs: 15_000 } },
      fill: () => held.opened,
    });
    await assert.rejects(handle.result(), failedAs('TimedOut', 'giveUpAfter'));
    held.open();
    assert.equal(calls.requests('recordFailure')[0]?.type, 'TimedOut');
  });

  it('is cancelled only once the fill has confirmed it and was ended for good', async () => {
    const [confirming, ending] = [gate(), gate()];
    let told = false;
    const [handle, calls] = await start({
      fill: async () => {
        try {
          await untilCancelled();
        } finally {
          told = true;
          await confirming.opened;
        }
      },
      control: {
        endFill: async () => {
          await ending.opened;
          return undefined;
        },
      },
    });
    await until(() => calls.calls.includes(`fillPartition ${KEY}`));
    await handle.cancel();
    await until(() => told);
    // The workflow has long handled the cancel when the activity hears of it, and waits.
    assert.deepEqual(calls.requests('endFill'), []);
    confirming.open();
    await until(() => calls.requests('endFill').length === 1);
    assert.equal((await handle.describe()).status.name, 'RUNNING');
    ending.open();
    await assert.rejects(handle.result(), cancelled);
    assert.deepEqual(calls.requests('endFill'), [
      { pipeline: calls.pipeline, ledger: 'l', key: KEY, run: handle.firstExecutionRunId },
    ]);
    assert.deepEqual(calls.requests('recordFailure'), []);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('counts whatever failure follows a cancel as cancelled', async () => {
    const [handle, calls] = await start({
      fill: async () => {
        await untilCancelled().catch(() => undefined);
        throw ApplicationFailure.nonRetryable('the check failed', 'CheckFailed');
      },
    });
    await until(() => calls.calls.includes(`fillPartition ${KEY}`));
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    assert.equal((await handle.describe()).status.name, 'CANCELLED');
    assert.deepEqual(calls.requests('recordFailure'), []);
  });

  it('returns a fill that had committed before the cancel reached it', async () => {
    const committed = { pipeline: 'p', key: KEY, rows: 9, deleted: 0, seconds: 0, warnings: [] };
    const [handle, calls] = await start({ fill: untilCancelled, control: { endFill: async () => committed } });
    await until(() => calls.calls.includes(`fillPartition ${KEY}`));
    await handle.cancel();
    assert.deepEqual(await handle.result(), committed);
  });

  it('retries what is retryable for as long as it takes, without a limit of attempts', async () => {
    let attempts = 0;
    const [handle] = await start({
      fill: async () => {
        attempts += 1;
        if (attempts < 6) throw ApplicationFailure.create({ message: 'busy', type: 'Conflict', nextRetryDelay: 1 });
      },
    });
    await handle.result();
    assert.equal(attempts, 6);
    const [scheduled] = (await eventsOf(handle)).flatMap((event) =>
      event.activityTaskScheduledEventAttributes?.activityType?.name === 'fillPartition'
        ? [event.activityTaskScheduledEventAttributes]
        : [],
    );
    assert.equal(scheduled?.retryPolicy?.maximumAttempts ?? 0, 0);
    assert.equal(Number(scheduled?.heartbeatTimeout?.seconds), 15);
    assert.equal(Number(scheduled?.startToCloseTimeout?.seconds), 90);
    assert.equal(Number(scheduled?.scheduleToCloseTimeout?.seconds), 600);
  });

  it('fails a workflow of an unknown type at once, and names those there are', async () => {
    const handle = await harness.start('backfil', scripted(), [{}]);
    await assert.rejects(handle.result(), failedAs('InvalidInput', 'backfill, partition'));
    assert.deepEqual(scheduledActivities(await eventsOf(handle)), []);
  });
});
