import assert from 'node:assert/strict';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { BackfillResult, Progress } from '../../src/contract.js';
import { cancelled, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  fillsOf,
  POLICY,
  runsOf,
  type Script,
  type Scripted,
  scripted,
  until,
} from './scripted.js';

const [first = '', second = '', third = '', fourth = ''] = days('2024-01-01', 4);
const SOON = { retryAfterMs: 1_000 };
const LONG = { retryAfterMs: 3_600_000 };
/** Less than a test has, so that one fails that waits for it. */
const policy = { ...POLICY, giveUpAfterMs: 30_000 };

describe('a heal that meets what is not ready', () => {
  const harness = new Harness();

  async function start(script: Script, ...more: unknown[]): Promise<[WorkflowHandleWithFirstExecutionRunId, Scripted]> {
    const plan = { asksReady: true, concurrency: 1, leavesAfterMs: 0, policy, ...script.plan } as const;
    const calls = scripted({ keys: [first, second, third], ...script, plan });
    return [await harness.backfill(calls, ...more), calls];
  }

  /** What each fill of a partition alone comes to. */
  const outcomesOf = ({ filled, failed, skipped, leftNotReady }: BackfillResult): (number | undefined)[] => [
    filled,
    failed,
    skipped,
    leftNotReady,
  ];

  it('fills everything else, and leaves that to the next heal: counted and named, and not failed', async () => {
    const reason = 'the shop has not closed yet';
    const [handle, calls] = await start({ fill: async (key) => (key === first ? { ...LONG, reason } : 1) });
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual(outcomesOf(result), [2, 0, 1, 1]);
    assert.deepEqual(result.notes, [
      `1 partition was not ready and is left to the next heal: ${first}. ${first}: ${reason}`,
    ]);
    assert.deepEqual(fillsOf(calls), [first, second, third]);
    assert.deepEqual(calls.requests('recordFailure'), []);
    const [end] = calls.requests('endBackfill');
    assert.deepEqual([end?.outcome, end?.filled, end?.failed, end?.skipped], ['done', 2, 0, 1]);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('fills what becomes ready in time', async () => {
    let tries = 0;
    const [handle, calls] = await start({
      plan: { leavesAfterMs: 600_000 },
      fill: async (key) => (key === first && tries++ === 0 ? SOON : 1),
    });
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual(outcomesOf(result), [3, 0, 0, undefined]);
    assert.deepEqual(result.notes, []);
    assert.deepEqual(fillsOf(calls), [first, second, third, first]);
  });

  it('tries it once more when its time is over', async () => {
    const policies: unknown[] = [];
    const [handle, calls] = await start({
      plan: { leavesAfterMs: 8_000 },
      fill: async (key, { policy: { notReady } }) => {
        policies.push(notReady);
        return key === first ? LONG : 1;
      },
    });
    assert.deepEqual(outcomesOf((await handle.result()) as BackfillResult), [2, 0, 1, 1]);
    assert.deepEqual(fillsOf(calls), [first, second, third, first]);
    assert.deepEqual([...new Set(policies)], ['yield'], 'none waits in its child, or fails');
  });

  it('waits for nothing before the others were tried, however many are not ready', async () => {
    const [handle, calls] = await start({
      plan: { leavesAfterMs: 600_000, maxWaiting: 1 },
      fill: async (key) => (key === third ? 1 : LONG),
    });
    const progress = (): Promise<Progress> => handle.query<Progress>('progress');
    await until(async () => (await progress()).filled === 1);
    const { waiting, skipped, failed } = await progress();
    assert.deepEqual([waiting, skipped, failed], [1, 1, 0]);
    assert.deepEqual(fillsOf(calls), [first, second, third]);
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
  });

  it('counts and names those of all its runs', async () => {
    const [handle] = await start(
      { keys: [first, second, third, fourth], fill: async (key) => (key === third ? 1 : LONG) },
      { partitionsPerRun: 2 },
    );
    const result = (await harness.client.workflow.getHandle(handle.workflowId).result()) as BackfillResult;
    assert.deepEqual(outcomesOf(result), [1, 0, 3, 3]);
    const named = `3 partitions were not ready and are left to the next heal: ${first}, ${second}, ${fourth}.`;
    assert.deepEqual(result.notes, [named]);
    assert.ok((await runsOf(harness.client, handle)).length > 1);
  });

  it('leaves those of a batch alone', async () => {
    const [handle] = await start({
      plan: { batch: 3 },
      batch: async ({ pipeline, keys, policy: { notReady } }) => {
        assert.equal(notReady, 'yield');
        const result = { pipeline, rows: 1, deleted: 0, seconds: 0, warnings: [] };
        return keys.map((key) => ({ ...result, key, ...(key === second ? { notReady: LONG } : {}) }));
      },
    });
    assert.deepEqual(outcomesOf((await handle.result()) as BackfillResult), [2, 0, 1, 1]);
  });
});
