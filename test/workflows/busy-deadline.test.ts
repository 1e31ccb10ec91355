import assert from 'node:assert/strict';
import { Context } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { type BackfillResult, MAX_WAITING, partitionWorkflowId, type Progress } from '../../src/contract.js';
import { cancelled, failureOf, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  gate,
  POLICY,
  scheduledActivities,
  type Script,
  scripted,
  type Scripted,
  until,
  untilCancelled,
} from './scripted.js';

const LATER = { retryAfterMs: 1_000 };
const LONG = { retryAfterMs: 3_600_000 };

/** A run that fills a partition, or several, of a pipeline, which is not the backfill's. */
interface Other {
  readonly id: string;
  /** Lets it end, and waits for that. */
  end(): Promise<void>;
}

describe('waiting for other runs', function () {
  this.timeout(300_000);
  const harness = new Harness();

  /** A backfill's parts, with other runs that are held on a queue of their own. */
  function parts(script: Script) {
    const calls = scripted({ ...script, plan: { policy: POLICY, ...script.plan } });
    const { pipeline } = calls;
    return {
      calls,
      other: async (name: string): Promise<Other> => {
        const held = gate();
        const queue = await harness.workers(scripted({ fill: () => held.opened }));
        const workflowId = partitionWorkflowId(pipeline, name);
        const args = [{ pipeline, key: name }];
        const run = await harness.client.workflow.start('partition', { taskQueue: queue, workflowId, args });
        return {
          id: workflowId,
          end: async () => {
            held.open();
            await run.result();
          },
        };
      },
      start: () => harness.backfill(calls),
    };
  }

  const fillsOf = ({ calls }: Scripted): string[] => calls.filter((call) => call.startsWith('fill'));
  const progressOf = (handle: WorkflowHandleWithFirstExecutionRunId): Promise<Progress> =>
    handle.query<Progress>('progress');

  it('ends for each when its own time is over: it alone fails, after a last try', async () => {
    const [stuck = '', ended = '', first = '', second = '', later = ''] = days('2024-01-01', 5);
    // Not in the past until it is known: a fill may begin before.
    let met = Infinity;
    let laterHasEnded = false;
    const { calls, other, start } = parts({
      keys: [stuck, ended, first, second, later],
      // What is met first has its time over long before what is met last: two fills lie between, each shorter than that time.
      plan: { concurrency: 1, policy: { ...POLICY, giveUpAfterMs: 30_000 } },
      fill: async (key) => {
        if (key === first) await until(() => Date.now() > met + 12_000);
        if (key === second) await until(() => Date.now() > met + 25_000);
      },
      control: {
        awaitPartitions: async ({ runs }) => {
          const last = runs.find(({ keys }) => keys[0] === later);
          const context = Context.current();
          // Ends by its cancel, too.
          for (; !laterHasEnded || !last; await context.sleep(200)) context.heartbeat();
          return { ended: [{ id: last.id, wantedKeys: last.keys }] };
        },
      },
    });
    const others = [await other(stuck), await other(ended), await other(later)] as const;
    const handle = await start();
    await until(async () => (await progressOf(handle)).running.some(({ keys }) => keys === first));
    met = Date.now();
    // Nobody tells the backfill of this end: its last try finds it.
    await others[1].end();
    await until(async () => (await progressOf(handle)).failed === 1 && (await progressOf(handle)).busy === 1);
    const { failures } = await progressOf(handle);
    assert.deepEqual([failures[0]?.key, failures[0]?.type], [stuck, 'Conflict']);
    assert.ok(failures[0]?.message.includes(others[0].id) && failures[0].message.includes('giveUpAfter'));
    laterHasEnded = true;
    await others[2].end();
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [4, 1]);
    const filled = [ended, first, second, later].map((key) => `fillPartition ${key}`);
    assert.deepEqual(fillsOf(calls).sort(), filled);
    const events = await eventsOf(handle);
    assert.deepEqual(failedTasks(events), []);
    assert.ok(scheduledActivities(events).filter((name) => name === 'awaitPartitions').length <= 4);
    await others[0].end();
  });

  it('begins anew where another joins', async () => {
    const [busy = '', joins = ''] = days('2024-01-01', 2);
    const first = gate();
    let tries = 0;
    const { calls, other, start } = parts({
      keys: [busy, joins],
      plan: { concurrency: 1, asksReady: true },
      fill: async (key) => {
        if (key !== joins || tries++ > 0) return 1;
        await first.opened;
        return LATER;
      },
      control: {
        awaitPartitions: async ({ runs }) => {
          if (runs.length < 2) return await untilCancelled();
          await Promise.all(others.map((one) => one.end()));
          return { ended: runs.map(({ id, keys }) => ({ id, wantedKeys: keys })) };
        },
      },
    });
    const others = [await other(busy)];
    const handle = await start();
    await until(() => calls.requests('awaitPartitions').length === 1);
    await handle.executeUpdate('pause', { args: [{}] });
    first.open();
    await until(async () => (await progressOf(handle)).waiting === 1);
    others.push(await other(joins));
    await handle.executeUpdate('resume', { args: [{}] });
    assert.equal(((await handle.result()) as BackfillResult).filled, 2);
    assert.deepEqual(
      calls.requests('awaitPartitions').map(({ runs }) => runs.map(({ keys }) => keys[0])),
      [[busy], [busy, joins]],
    );
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('shares its room with partitions that are not ready; beyond it, a lane waits', async () => {
    const size = 90;
    const batches = Math.floor(MAX_WAITING / size) + 1;
    const keys = days('2020-01-01', size * batches);
    const nameOf = (i: number): string => `${keys[i * size]}..${keys[(i + 1) * size - 1]}`;
    const policies = new Map<string, string | undefined>();
    const inLane = gate();
    const { calls, other, start } = parts({
      keys,
      page: keys.length,
      plan: { concurrency: 1, batch: size, asksReady: true },
      batch: async ({ pipeline, keys, policy }) => {
        policies.set(keys[0] ?? '', policy.notReady);
        const result = { pipeline, rows: 1, deleted: 0, seconds: 0, warnings: [] };
        return keys.map((key) => ({ ...result, key, ...(policy.notReady === 'yield' ? { notReady: LONG } : {}) }));
      },
      control: {
        awaitPartition: async () => {
          await inLane.opened;
          return { wanted: true };
        },
        awaitPartitions: untilCancelled,
      },
    });
    // The second of those that find room, and the one that finds none.
    const others = [await other(nameOf(1)), await other(nameOf(batches - 1))] as const;
    const handle = await start();
    await until(() => calls.requests('awaitPartition').length === 1);
    const { busy, waiting, running } = await progressOf(handle);
    assert.deepEqual([busy, waiting], [size, size * (batches - 2)]);
    assert.deepEqual(
      running.map(({ keys }) => keys),
      [nameOf(batches - 1)],
    );
    assert.equal(calls.requests('awaitPartition')[0]?.id, others[1].id);
    await others[1].end();
    inLane.open();
    await until(async () => (await progressOf(handle)).filled === size);
    assert.equal(policies.get(keys[0]!), 'yield');
    assert.equal(policies.get(keys[size * (batches - 1)]!), undefined);
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
    await others[0].end();
  });

  it('in a lane ends, too, when its time is over', async () => {
    const size = 90;
    const batches = Math.floor(MAX_WAITING / size) + 1;
    const keys = days('2020-01-01', size * batches);
    const { calls, other, start } = parts({
      keys,
      page: keys.length,
      plan: { concurrency: 1, batch: size, asksReady: true, policy: { ...POLICY, giveUpAfterMs: 20_000 } },
      batch: async ({ pipeline, keys, policy }) => {
        const result = { pipeline, rows: 1, deleted: 0, seconds: 0, warnings: [] };
        return keys.map((key) => ({ ...result, key, ...(policy.notReady === 'yield' ? { notReady: LONG } : {}) }));
      },
      control: { awaitPartition: untilCancelled },
    });
    const last = await other(`${keys[size * (batches - 1)]}..${keys.at(-1)}`);
    const handle = await start();
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [size * (batches - 1), size]);
    assert.equal(result.failures[0]?.type, 'Conflict');
    assert.equal(calls.requests('awaitPartition').length, 1);
    await last.end();
  });
});
