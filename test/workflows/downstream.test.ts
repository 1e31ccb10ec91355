import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { BackfillResult } from '../../src/contract.js';
import { type DownstreamScript, KEYS, withDownstream } from './downstream-script.js';
import { failureOf, Harness } from './harness.js';
import { gate, POLICY, runsOf, scripted, type Scripted, until, untilCancelled } from './scripted.js';

describe('backfills of what depends on a backfill', () => {
  const harness = new Harness();

  /** How often the backfill of each was planned. */
  const plansOf = (calls: Scripted, { names }: DownstreamScript): number[] =>
    names.map(
      (name) =>
        calls
          .requests('planBackfill')
          .filter(({ arguments: [input] }) => (input as { pipeline: string }).pipeline === name).length,
    );

  it('that fail are named with the reason: in the failure, in the result, and in what is told', async () => {
    const down = withDownstream({ plan: { notifies: true, policy: POLICY, run: 'told' } }, (pipeline) => {
      if (pipeline.startsWith('first'))
        throw ApplicationFailure.nonRetryable(`There is no pipeline ${pipeline}.`, 'UnknownPipeline');
    });
    const calls = scripted(down.script);
    const handle = await harness.backfill(calls);
    const { type, message, details } = await failureOf(handle);
    assert.equal(type, 'BackfillIncomplete');
    const reason = `There is no pipeline ${down.names[0]}.`;
    const said = `what depends on them is not. ${handle.workflowId}/${down.names[0]}: ${reason} Mend the cause`;
    assert.ok(message.includes(said), message);
    const { downstream = [] } = details?.[0] as BackfillResult;
    assert.deepEqual(
      downstream.map((one) => [one.filled, one.reason]),
      [
        [0, reason],
        [KEYS.length, undefined],
      ],
    );
    await until(() => calls.requests('tell').length > 0);
    const [ended] = calls.requests('tell');
    assert.equal(ended?.outcome, 'incomplete');
    assert.ok(ended?.reason?.includes(reason), ended?.reason);
  });

  it('of which the ledger does not have one are named with the reason, and the others are filled', async () => {
    const unserved = 'No worker serves it: there is no table first.';
    const down = withDownstream({
      control: {
        planDownstream: async ({ pipeline, first, last }) => ({
          pipelines: [
            { pipeline: down.names[0], after: [pipeline], total: 0, unserved },
            { pipeline: down.names[1], after: [pipeline], total: KEYS.length, first, last },
          ],
          notes: [],
        }),
      },
    });
    const { type, message, details } = await failureOf(await harness.backfill(scripted(down.script)));
    assert.equal(type, 'BackfillIncomplete');
    assert.ok(message.includes(`is not. ${down.names[0]}: ${unserved} Mend the cause`), message);
    const { downstream = [] } = details?.[0] as BackfillResult;
    assert.deepEqual(
      downstream.map(({ filled, id, reason }) => [filled, id !== undefined, reason]),
      [
        [0, false, unserved],
        [KEYS.length, true, undefined],
      ],
    );
  });

  it('are begun once, also where a lever has made work meanwhile and the run continues as new', async () => {
    const held = gate();
    const down = withDownstream({}, (pipeline) => (pipeline.startsWith('first') ? held.opened : undefined));
    const calls = scripted(down.script);
    const handle = await harness.backfill(calls, { partitionsPerRun: KEYS.length });
    await until(() => plansOf(calls, down)[0] === 1);
    await handle.executeUpdate('retryFailed', { args: [{}] });
    held.open();
    const result = (await harness.client.workflow.getHandle(handle.workflowId).result()) as BackfillResult;
    assert.equal((await runsOf(harness.client, handle)).length, 2);
    assert.deepEqual(plansOf(calls, down), [1, 1]);
    assert.deepEqual(
      result.downstream?.map(({ filled }) => filled),
      [KEYS.length, KEYS.length],
    );
  });

  it('stopped while it waits for an earlier run of one, begins it not', async () => {
    const down = withDownstream({ control: { awaitRun: untilCancelled } });
    const calls = scripted(down.script);
    const taskQueue = await harness.workers(calls);
    const workflowId = `backfill/${calls.pipeline}`;
    const held = await harness.client.workflow.start('partition', {
      taskQueue: `${taskQueue}-nobody`,
      workflowId: `${workflowId}/${down.names[0]}`,
    });
    const handle = await harness.client.workflow.start('backfill', {
      taskQueue,
      workflowId,
      args: [{ pipeline: calls.pipeline }],
    });
    await until(() => calls.calls.includes('awaitRun'));
    await handle.executeUpdate('stop', { args: [{}] });
    const { stopped, downstream } = (await handle.result()) as BackfillResult;
    assert.equal(stopped, true);
    assert.deepEqual(
      downstream?.map(({ filled, id }) => [filled, id]),
      [
        [0, undefined],
        [0, undefined],
      ],
    );
    await held.terminate();
  });
});
