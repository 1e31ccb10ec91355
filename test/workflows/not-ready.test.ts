import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { CarriedBackfill } from '../../src/workflows/carried.js';
import { type BackfillResult, MAX_WAITING, MAX_WAITING_AFTER, type Progress } from '../../src/contract.js';
import { WaitingLine } from '../../src/workflows/waiting-line.js';
import { cancelled, failureOf, Harness } from './harness.js';
import { days, eventsOf, failedTasks, gate, runsOf, type Script, type Scripted, scripted, until } from './scripted.js';

const LATER = { retryAfterMs: 1_000 };
const LONG = { retryAfterMs: 3_600_000 };
const [first = '', second = '', third = '', fourth = ''] = days('2024-01-01', 4);
const POLICY = { ledger: 'l', fingerprint: 'f', timeoutMs: 60_000, giveUpAfterMs: 600_000 };

describe('a partition whose source is not ready', () => {
  const harness = new Harness();

  async function start(script: Script, ...more: unknown[]): Promise<[WorkflowHandleWithFirstExecutionRunId, Scripted]> {
    const calls = scripted({
      keys: [first, second, third],
      ...script,
      plan: { asksReady: true, concurrency: 1, ...script.plan },
    });
    return [await harness.backfill(calls, ...more), calls];
  }

  const fills = ({ calls }: Scripted): string[] => calls.filter((call) => call.startsWith('fill'));

  it('goes behind all others, and is filled then', async () => {
    let asked = 0;
    const [handle, calls] = await start({
      fill: async (key, { policy }) => {
        assert.equal(policy.notReady, 'yield');
        return key === first && asked++ === 0 ? LATER : 2;
      },
    });
    const { filled, rows, failed } = (await handle.result()) as BackfillResult;
    assert.deepEqual({ filled, rows, failed }, { filled: 3, rows: 6, failed: 0 });
    assert.deepEqual(
      fills(calls),
      [first, second, third, first].map((key) => `fillPartition ${key}`),
    );
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('is counted as waiting, with why, holds no lane, and holds up no cancel', async () => {
    const reason = 'the shop has not closed yet';
    const [handle, calls] = await start({
      // So many that the rate is known.
      keys: days(first, 8),
      fill: async (key) => (key === first ? { ...LONG, reason } : 1),
    });
    await until(async () => (await handle.query<Progress>('progress')).filled === 7);
    const { waiting, notReady, running, failed, ...progress } = await handle.query<Progress>('progress');
    assert.deepEqual({ waiting, running, failed }, { waiting: 1, running: [], failed: 0 });
    assert.deepEqual(notReady, { key: first, reason });
    assert.equal(progress.secondsLeft, undefined, 'nobody knows how long it waits');
    assert.notEqual(progress.perMinute, undefined);
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'cancelled');
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('has one last try once its time is up, and fails then as it says', async () => {
    let tries = 0;
    const [handle, calls] = await start({
      // Its first two tries must begin before it is up, however slow the machine: nothing else is filled between them.
      keys: [second, third, first],
      plan: { policy: { ...POLICY, giveUpAfterMs: 20_000 } },
      fill: async (key, { policy }) => {
        if (key !== first) return 1;
        if (policy.notReady === 'fail') throw ApplicationFailure.nonRetryable('not there', 'SourceNotReady');
        // Longer than its time: the last try comes when that is up.
        return tries++ === 0 ? { retryAfterMs: 1 } : LONG;
      },
    });
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [2, 1]);
    assert.deepEqual(result.failures, [{ key: first, type: 'SourceNotReady', message: 'not there' }]);
    assert.equal(tries, 2);
    assert.equal(calls.requests('recordFailure')[0]?.type, 'SourceNotReady');
  });

  it('is carried over continue-as-new, with the time since it was first tried', async () => {
    const open = gate();
    let opened = false;
    void open.opened.then(() => (opened = true));
    const [handle, calls] = await start(
      { keys: days('2024-01-01', 7), fill: async (key) => (key <= second && !opened ? LATER : 1) },
      { partitionsPerRun: 3 },
    );
    await until(() => fills(calls).filter((call) => call.endsWith(first)).length >= 2);
    open.open();
    const result = (await harness.client.workflow.getHandle(handle.workflowId).result()) as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [7, 0]);
    const runs = await runsOf(harness.client, handle);
    assert.ok(runs.length > 2, String(runs.length));
    const carried = await Promise.all(
      runs.slice(1).map(async ({ runId }) => {
        const [started] = await eventsOf(harness.client.workflow.getHandle(handle.workflowId, runId));
        const [, argument] = started?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
        return (JSON.parse(Buffer.from(argument?.data ?? '').toString()) as { carried: CarriedBackfill }).carried;
      }),
    );
    const since = carried.map(({ waiting }) => waiting?.find(({ keys }) => keys.includes(first))?.since);
    assert.ok(since[0] !== undefined && since.every((time) => time === undefined || time === since[0]), String(since));
    for (const key of days('2024-01-03', 5)) assert.equal(fills(calls).filter((call) => call.endsWith(key)).length, 1);
  });

  it('is asked less often the longer it waits, where its wait may be prolonged', async () => {
    const asked: number[] = [];
    const [handle] = await start({
      keys: [first],
      fill: async () => {
        asked.push(Date.now());
        return asked.length < 4 ? { retryAfterMs: 500, longestWaitMs: 3_600_000 } : 1;
      },
    });
    await handle.result();
    const timers = (await eventsOf(handle)).flatMap((event) => {
      const { seconds, nanos } = event.timerStartedEventAttributes?.startToFireTimeout ?? {};
      return seconds === undefined ? [] : [Number(seconds) * 1_000 + (nanos ?? 0) / 1e6];
    });
    assert.equal(timers.length, 3);
    // Each as long as all before it, by the workflow's own clock.
    for (const [place, ms] of timers.entries())
      assert.ok(ms >= timers.slice(0, place).reduce((sum, other) => sum + other, 0), timers.join());
    assert.ok((timers[2] ?? 0) >= 2 * (timers[1] ?? 0), timers.join());
  });

  it('of a pipeline after others leaves the lanes to what is ready, however many wait', async () => {
    const waiting = days('2000-01-01', MAX_WAITING + 1);
    const [ready = ''] = days('2024-01-01', 1);
    const groups = waiting.map((key) => ({ keys: [key], since: Date.now(), due: Date.now() + 3_600_000 }));
    const remaining = new WaitingLine(groups, () => 0, MAX_WAITING_AFTER);
    assert.equal(remaining.full, false);
    assert.equal(remaining.reserve([ready]), true);
    assert.equal(new WaitingLine(groups).full, true);
  });

  it('of a batch waits with those of its neighbours that are not ready', async () => {
    let batches = 0;
    const [handle, calls] = await start({
      keys: [first, second, third, fourth],
      plan: { batch: 4 },
      fill: async (key) => (key !== second && batches === 0 ? LATER : 1),
      batch: async ({ pipeline, keys }) => {
        batches += 1;
        const result = { pipeline, rows: 1, deleted: 0, seconds: 0, warnings: [] };
        return keys.map((key) => ({ ...result, key, ...(batches === 1 && key !== second ? { notReady: LATER } : {}) }));
      },
    });
    assert.equal(((await handle.result()) as BackfillResult).filled, 4);
    assert.deepEqual(fills(calls), [
      `fillBatch ${first}..${fourth}`,
      `fillPartition ${first}`,
      `fillBatch ${third}..${fourth}`,
    ]);
  });

  it('of a pipeline that does not ask is no case: nothing is handed down', async () => {
    const policies: unknown[] = [];
    const [handle] = await start({
      plan: { asksReady: undefined },
      fill: async (_key, { policy }) => void policies.push(policy.notReady),
    });
    await handle.result();
    assert.deepEqual(policies, [undefined, undefined, undefined]);
  });
});
