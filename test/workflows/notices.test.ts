import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import type { NoticeRequest } from '../../src/activities/messages.js';
import { noticeWorkflowId, type Steered } from '../../src/contract.js';
import { cancelledWhileEnding } from './cancelled-while-ending.js';
import { cancelled, failureOf, Harness } from './harness.js';
import {
  days,
  eventsOf,
  gate,
  POLICY,
  runsOf,
  type Script,
  type Scripted,
  scripted,
  until,
  untilCancelled,
} from './scripted.js';

const KEYS = days('2024-01-01', 12);
const fails = (): never => {
  throw ApplicationFailure.nonRetryable('no', 'DataError');
};

/** The types of the workflows that a run has started. */
const childrenOf = (events: Awaited<ReturnType<typeof eventsOf>>): string[] =>
  events.flatMap((event) => event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowType?.name ?? []);

describe('notices', () => {
  const harness = new Harness();

  /** A script whose plan knows of a hook, and whose ledger's run is its own: ids of notices hold it. */
  const withHook = ({ plan, ...script }: Script = {}): Scripted & { run: string } => {
    const run = randomUUID();
    return {
      run,
      ...scripted({ keys: KEYS, fill: fails, ...script, plan: { notifies: true, run, policy: POLICY, ...plan } }),
    };
  };
  const told = (calls: Scripted): NoticeRequest[] => calls.requests('tell');
  const noticesOf = async (handle: WorkflowHandle): Promise<string[]> =>
    childrenOf(await eventsOf(handle)).filter((type) => type === 'notice');
  const events = (calls: Scripted): string[] =>
    told(calls)
      .map(({ event }) => event)
      .sort();

  it('tell of the first failure and of the end, once each, over all runs of a backfill', async () => {
    const calls = withHook();
    const handle = await harness.backfill(calls, { partitionsPerRun: 5 });
    await failureOf(harness.client.workflow.getHandle(handle.workflowId));
    await until(() => told(calls).length >= 2);
    assert.deepEqual(events(calls), ['backfill-ended', 'partition-failed']);
    const [failed, ended] = told(calls).sort((a, b) => (a.event < b.event ? 1 : -1));
    assert.deepEqual([failed?.id, ended?.id], [`${calls.run}/partition-failed`, `${calls.run}/backfill-ended`]);
    assert.deepEqual([failed?.counts?.failed, ended?.counts?.failed, ended?.failures?.length], [1, 12, 10]);
    assert.deepEqual(ended?.backfill, { id: handle.workflowId, run: calls.run });
    const runs = await runsOf(harness.client, handle);
    assert.ok(runs.length > 2);
    const started = await Promise.all(
      runs.map(({ runId }) => noticesOf(harness.client.workflow.getHandle(handle.workflowId, runId))),
    );
    assert.equal(started.flat().length, 2, 'and nothing is begun that would be no more than refused');
  });

  it('hold nothing up: a backfill ends though nobody takes them', async () => {
    const taken = gate();
    const calls = withHook({ control: { tell: () => taken.opened } });
    try {
      await failureOf(await harness.backfill(calls));
      const { status } = await harness.client.workflow
        .getHandle(noticeWorkflowId(`${calls.run}/backfill-ended`))
        .describe();
      assert.equal(status.name, 'RUNNING');
    } finally {
      taken.open();
    }
  });

  it('tell once of a pause for which several partitions have failed, and of the next one again', async () => {
    const together = gate();
    const calls = withHook({
      plan: { onFailure: 'pause', concurrency: 3 },
      fill: async (key) => {
        if (KEYS.indexOf(key) === 2) together.open();
        if (KEYS.indexOf(key) < 3) await together.opened;
        if (KEYS.indexOf(key) < 4) fails();
      },
    });
    const handle = await harness.backfill(calls);
    const paused = (): string[] => told(calls).flatMap(({ id, event }) => (event === 'backfill-paused' ? [id] : []));
    const resume = (): Promise<Steered> => handle.executeUpdate<Steered, []>('resume');
    await until(async () => (await handle.query<{ failed: number }>('progress')).failed === 3);
    await until(() => paused().length > 0);
    assert.deepEqual(paused(), [`${calls.run}/backfill-paused`]);
    await resume();
    await until(() => paused().length > 1);
    assert.deepEqual(paused(), [`${calls.run}/backfill-paused`, `${calls.run}/backfill-paused/2`]);
    await resume();
    await failureOf(handle);
    await until(() => events(calls).includes('backfill-ended'));
    assert.deepEqual(events(calls), ['backfill-ended', 'backfill-paused', 'backfill-paused', 'partition-failed']);
  });

  it('tell of the end alone that was one: not where a lever has made work again', async () => {
    const [ending, pulled] = [gate(), gate()];
    const failing = new Set(KEYS.slice(0, 1));
    const calls = withHook({
      fill: async (key) => (failing.has(key) ? fails() : undefined),
      control: {
        failedKeys: async ({ after }) => [...failing].filter((key) => after === undefined || key > after),
        endBackfill: async () => {
          ending.open();
          await pulled.opened;
          return undefined;
        },
      },
    });
    const handle = await harness.backfill(calls);
    await ending.opened;
    failing.delete(KEYS[0]!);
    failing.add(KEYS[1]!);
    await handle.executeUpdate<Steered, []>('retryFailed');
    pulled.open();
    await failureOf(handle);
    await until(() => events(calls).includes('backfill-ended'));
    assert.equal((await noticesOf(handle)).length, 2);
    assert.deepEqual(events(calls), ['backfill-ended', 'partition-failed']);
  });

  it('tell the end that it has: as cancelled, where a cancel comes while the last word is written', async () => {
    const [handle, calls] = await cancelledWhileEnding(harness, withHook);
    await assert.rejects(handle.result(), cancelled);
    await until(() => events(calls).includes('backfill-ended'));
    const [ended] = told(calls).filter(({ event }) => event === 'backfill-ended');
    assert.deepEqual([ended?.outcome, ended?.counts?.failed], ['cancelled', KEYS.length]);
  });

  it('tell why all of a backfill is filled and it has not ended whole: what failed downstream, and by what', async () => {
    const next = { pipeline: 'weekly', first: KEYS[0]!, last: KEYS[1]!, total: 2, after: [] };
    const range = { first: KEYS[0]!, last: KEYS.at(-1)! };
    const calls = withHook({
      fill: async () => undefined,
      plan: { ...range, downstream: true },
      control: { planDownstream: async () => ({ pipelines: [next], notes: [] }) },
    });
    const planBackfill = calls.control.planBackfill.bind(calls.control);
    calls.control.planBackfill = async (request) => {
      const [{ pipeline }] = request.arguments as [{ pipeline: string }];
      if (pipeline === 'weekly')
        throw ApplicationFailure.nonRetryable('There is no weekly any more.', 'UnknownPipeline');
      return planBackfill(request);
    };
    const handle = await harness.backfill(calls);
    await failureOf(handle);
    await until(() => told(calls).length > 0);
    const [ended] = told(calls);
    assert.deepEqual([ended?.event, ended?.outcome, ended?.counts?.failed], ['backfill-ended', 'incomplete', 0]);
    assert.ok(ended?.reason?.includes(`${handle.workflowId}/weekly: There is no weekly any more.`), ended?.reason);
  });

  it('tell nothing where the plan knows of no hook, and start nothing', async () => {
    const calls = withHook({ plan: { notifies: undefined, onFailure: 'stop', tries: 1 } });
    const handle = await harness.backfill(calls);
    await failureOf(handle);
    assert.deepEqual(new Set(childrenOf(await eventsOf(handle))), new Set(['partition']));
    assert.deepEqual(told(calls), []);
  });

  it('are of a partition alone that has failed, and not of one that was cancelled', async () => {
    const script: Script = {
      control: { planPartition: async () => ({ pipeline: 'p', key: KEYS[0]!, policy: POLICY, notifies: true }) },
    };
    const failing = withHook(script);
    const failed = await harness.start('partition', failing, [{}]);
    await failureOf(failed);
    await until(() => told(failing).length > 0);
    assert.deepEqual(
      told(failing).map(({ id, key, backfill, partition }) => [id, key, backfill, partition?.id]),
      [[`${failed.firstExecutionRunId}/partition-failed`, KEYS[0], undefined, failed.workflowId]],
    );

    const stopped = withHook({ ...script, fill: async () => untilCancelled() });
    const handle = await harness.start('partition', stopped, [{}]);
    await until(() => stopped.calls.some((call) => call.startsWith('fillPartition')));
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    assert.deepEqual(told(stopped), []);
  });

  it('are given up with an error of their own, in which nobody else is concerned', async () => {
    const calls = withHook({
      keys: KEYS.slice(0, 1),
      plan: { tries: 1 },
      control: {
        tell: async ({ event }) => {
          if (event === 'heal-gave-up') throw ApplicationFailure.nonRetryable('it is away', 'NotTold');
        },
      },
    });
    assert.equal((await failureOf(await harness.backfill(calls))).type, 'BackfillIncomplete');
    const ended = await failureOf(harness.client.workflow.getHandle(noticeWorkflowId(`${calls.run}/heal-gave-up`)));
    assert.equal(ended.type, 'NotTold');
    assert.match(ended.message, /Nobody was told of .*\/heal-gave-up, and it was given up\. The last try: it is away/);
  });
});
