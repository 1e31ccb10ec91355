import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import { type WorkflowHandleWithFirstExecutionRunId, WorkflowUpdateFailedError } from '@temporalio/client';
import type { ControlActivities } from '../../src/activities/create-activities.js';
import type { PlanBackfillRequest } from '../../src/activities/messages.js';
import type { BackfillResult, Lever, Progress, Steered } from '../../src/contract.js';
import { cancelled, failureOf, Harness } from './harness.js';
import { days, eventsOf, failedTasks, gate, type Script, type Scripted, scripted, until } from './scripted.js';

const KEYS = days('2024-01-01', 12);

describe('levers', () => {
  const harness = new Harness();

  async function start(script: Script, ...more: unknown[]): Promise<[WorkflowHandleWithFirstExecutionRunId, Scripted]> {
    const calls = scripted({ keys: KEYS, ...script });
    return [await harness.backfill(calls, ...more), calls];
  }

  function pull(
    handle: WorkflowHandleWithFirstExecutionRunId,
    lever: Lever,
    input?: unknown,
    updateId: string = randomUUID(),
  ): Promise<Steered> {
    return harness.client.workflow
      .getHandle(handle.workflowId)
      .executeUpdate<Steered, [unknown]>(lever, { args: [input], updateId });
  }

  const fillsOf = ({ calls }: Scripted): number => calls.filter((call) => call.startsWith('fillPartition')).length;
  const progressOf = (handle: WorkflowHandleWithFirstExecutionRunId): Promise<Progress> =>
    harness.client.workflow.getHandle(handle.workflowId).query<Progress>('progress');

  it('pause holds what is not begun, until resume; the ledger and progress say why', async () => {
    const [held, last] = [gate(), gate()];
    const fill = (key: string) => (key === KEYS.at(-1) ? last.opened : held.opened);
    const [handle, calls] = await start({ plan: { concurrency: 2 }, fill });
    await until(() => fillsOf(calls) === 2);
    const paused = await pull(handle, 'pause', { reason: 'the source is down' });
    assert.deepEqual(
      [paused.concurrency, paused.paused?.by, paused.paused?.reason],
      [2, 'lever', 'the source is down'],
    );
    held.open();
    await until(async () => (await progressOf(handle)).filled === 2);
    const progress = await progressOf(handle);
    assert.deepEqual([progress.phase, progress.paused?.reason, progress.running], ['paused', 'the source is down', []]);
    await until(() => calls.requests('noteBackfill').length === 1);
    assert.equal(calls.requests('noteBackfill')[0]?.paused?.reason, 'the source is down');
    // A second pause says the new reason, and since when it has been paused at all.
    const again = await pull(handle, 'pause', { reason: 'still' });
    assert.deepEqual([again.paused?.reason, again.paused?.since], ['still', paused.paused?.since]);
    assert.equal(fillsOf(calls), 2);
    assert.equal((await pull(handle, 'resume')).paused, undefined);
    // Before the last has ended, with which a note that is on its way is dropped.
    await until(() => calls.requests('noteBackfill').at(-1)?.paused === undefined);
    last.open();
    assert.equal(((await handle.result()) as BackfillResult).filled, 12);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('setConcurrency lets lanes grow and shrink at once', async () => {
    const gates = KEYS.map(() => gate());
    const [handle, calls] = await start({
      plan: { concurrency: 1 },
      fill: (key) => gates[KEYS.indexOf(key)]!.opened,
    });
    await until(() => fillsOf(calls) === 1);
    assert.equal((await pull(handle, 'setConcurrency', { concurrency: 5 })).concurrency, 5);
    await until(() => fillsOf(calls) === 5);
    await pull(handle, 'setConcurrency', { concurrency: 2 });
    for (const one of gates.slice(0, 3)) one.open();
    await until(async () => (await progressOf(handle)).filled === 3);
    assert.deepEqual((await progressOf(handle)).running.length, 2);
    assert.equal(fillsOf(calls), 5);
    gates[3]!.open();
    await until(() => fillsOf(calls) === 6);
    assert.deepEqual((await progressOf(handle)).running.length, 2);
    assert.equal((await progressOf(handle)).concurrency, 2);
    for (const one of gates) one.open();
    assert.equal(((await handle.result()) as BackfillResult).filled, 12);
  });

  it('stop finishes what runs, starts nothing more, and returns', async () => {
    const held = gate();
    const [handle, calls] = await start({ fill: () => held.opened });
    await until(() => fillsOf(calls) === 3);
    assert.equal((await pull(handle, 'stop')).stopping, true);
    assert.equal((await progressOf(handle)).phase, 'stopping');
    held.open();
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.stopped, result.filled, result.failed, result.total], [true, 3, 0, 12]);
    assert.equal(fillsOf(calls), 3);
    assert.deepEqual(
      calls.requests('endBackfill').map(({ outcome }) => outcome),
      ['stopped'],
    );
  });

  it('stop with failures fails as BackfillIncomplete, which says that it was stopped', async () => {
    const held = gate();
    const [handle, calls] = await start({
      fill: async (key) => {
        await held.opened;
        if (key === KEYS[1]) throw ApplicationFailure.nonRetryable('bad', 'DataError');
      },
    });
    await until(() => fillsOf(calls) === 3);
    await pull(handle, 'stop');
    held.open();
    const failure = await failureOf(handle);
    assert.match(failure.message, /stopped with 9 left.*only: \["missing", "failed", "outdated"\]/);
    const result = failure.details?.[0] as BackfillResult;
    assert.deepEqual([result.stopped, result.filled, result.failed], [true, 2, 1]);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'incomplete');
  });

  it('stop with nothing left is just done', async () => {
    const held = gate();
    const [handle, calls] = await start({ keys: KEYS.slice(0, 3), fill: () => held.opened });
    await until(() => fillsOf(calls) === 3);
    await pull(handle, 'stop');
    held.open();
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.stopped, result.filled], [undefined, 3]);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'done');
  });

  /** A backfill whose plan is made once `planning` is opened. */
  function slowlyPlanned() {
    const planning = gate();
    const calls = scripted({ keys: KEYS });
    const plan: ControlActivities['planBackfill'] = (request) => calls.control.planBackfill(request);
    const planBackfill = async (request: PlanBackfillRequest) => {
      await planning.opened;
      return plan(request);
    };
    return { calls, planning, slow: { ...calls, control: { ...calls.control, planBackfill } } };
  }

  it('all work while it plans: stop ends it with nothing filled', async () => {
    const { calls, planning, slow } = slowlyPlanned();
    const handle = await harness.backfill(slow);
    assert.equal((await pull(handle, 'pause', { reason: 'too early' })).paused?.reason, 'too early');
    assert.equal((await pull(handle, 'setConcurrency', { concurrency: 7 })).concurrency, 7);
    assert.equal((await pull(handle, 'stop')).stopping, true);
    assert.equal((await progressOf(handle)).phase, 'planning');
    planning.open();
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.stopped, result.filled], [true, 0]);
    assert.equal(fillsOf(calls), 0);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'stopped');
  });

  it('a pause while it plans holds everything until resume', async () => {
    const { calls, planning, slow } = slowlyPlanned();
    const handle = await harness.backfill(slow);
    await pull(handle, 'pause');
    planning.open();
    await until(() => calls.requests('noteBackfill').length === 1);
    assert.equal((await progressOf(handle)).phase, 'paused');
    assert.equal(fillsOf(calls), 0);
    await pull(handle, 'resume');
    assert.equal(((await handle.result()) as BackfillResult).filled, 12);
  });

  it('refuse another shape, and say what was given and expected', async () => {
    const held = gate();
    const [handle, calls] = await start({ fill: () => held.opened });
    await until(() => fillsOf(calls) === 3);
    const bad: [Lever, unknown, RegExp][] = [
      ['pause', { reason: 5 }, /reason must be a text of at most 200 characters in one line, and was given as 5/],
      ['pause', { reason: 'x'.repeat(201) }, /one of 201/],
      ['pause', { why: 'x' }, /unknown field "why"/],
      ['pause', 'now', /pause takes a JSON object with reason, and was given "now"/],
      ['resume', { reason: 'x' }, /resume takes an empty JSON object, or nothing/],
      ['setConcurrency', {}, /concurrency must be a whole number from 1 to 100, and was given as nothing/],
      ['setConcurrency', { concurrency: 0 }, /given as 0/],
      ['setConcurrency', { concurrency: 5_000 }, /from 1 to 100, and was given as 5000/],
      ['setConcurrency', { concurrency: '4' }, /given as "4"/],
      ['setConcurrency', { concurrency: 1.5 }, /given as 1\.5/],
      ['stop', [], /stop takes an empty JSON object, or nothing, and was given \[\]/],
      ['retryFailed', { all: true }, /unknown field "all"/],
    ];
    for (const [lever, input, message] of bad) {
      await assert.rejects(pull(handle, lever, input), (error) => {
        assert.ok(error instanceof WorkflowUpdateFailedError);
        assert.ok(error.cause instanceof ApplicationFailure);
        assert.equal(error.cause.type, 'InvalidInput');
        assert.match(error.cause.message, message);
        return true;
      });
    }
    const progress = await progressOf(handle);
    assert.deepEqual([progress.concurrency, progress.paused, progress.phase], [3, undefined, 'filling']);
    held.open();
    await handle.result();
  });

  it('the signal steer does the same, and passes over what is malformed', async () => {
    const held = gate();
    const [handle, calls] = await start({ plan: { concurrency: 1 }, fill: () => held.opened });
    await until(() => fillsOf(calls) === 1);
    for (const steer of [
      undefined,
      'pause',
      {},
      { id: 'a' },
      { id: '', lever: 'pause' },
      { id: 'a', lever: 'explode' },
    ]) {
      await handle.signal('steer', steer);
    }
    await handle.signal('steer', { id: 'b', lever: 'setConcurrency', input: { concurrency: 101 } });
    await handle.signal('steer', { id: 'c', lever: 'pause', input: { reason: 'by signal' } });
    await until(async () => (await progressOf(handle)).paused?.reason === 'by signal');
    // The same id is pulled once, whether as a signal or as an update.
    await pull(handle, 'resume');
    await handle.signal('steer', { id: 'c', lever: 'pause', input: { reason: 'again' } });
    assert.equal((await pull(handle, 'pause', { reason: 'again' }, 'c')).paused, undefined);
    await handle.signal('steer', { id: 'd', lever: 'setConcurrency', input: { concurrency: 4 } });
    await until(() => fillsOf(calls) === 4);
    held.open();
    assert.equal(((await handle.result()) as BackfillResult).filled, 12);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('a signal that was sent with no worker is heard by the first', async () => {
    const calls = scripted({ keys: KEYS });
    const { pipeline } = calls;
    const taskQueue = `later-${randomUUID()}`;
    const workflowId = `backfill/${pipeline}`;
    const handle = await harness.client.workflow.start('backfill', { taskQueue, workflowId, args: [{ pipeline }] });
    await handle.signal('steer', { id: 'x', lever: 'stop' });
    await harness.workers(calls, taskQueue);
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.stopped, result.filled], [true, 0]);
  });

  it('a ledger that is away holds up neither levers nor the end', async () => {
    const held = gate();
    const [handle, calls] = await start({
      fill: () => held.opened,
      control: {
        noteBackfill: async () => {
          throw new Error('the ledger is away');
        },
      },
    });
    await until(() => fillsOf(calls) === 3);
    await pull(handle, 'setConcurrency', { concurrency: 4 });
    await until(() => fillsOf(calls) === 4);
    held.open();
    assert.equal(((await handle.result()) as BackfillResult).filled, 12);
    assert.equal(calls.requests('endBackfill').length, 1);
  });

  it('a cancel while it is paused ends it', async () => {
    const held = gate();
    const [handle, calls] = await start({ fill: () => held.opened });
    await until(() => fillsOf(calls) === 3);
    await pull(handle, 'pause');
    held.open();
    await until(async () => (await progressOf(handle)).filled === 3);
    await handle.cancel();
    await assert.rejects(handle.result(), cancelled);
    assert.equal(fillsOf(calls), 3);
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'cancelled');
  });

  it('a stop while it is paused ends it', async () => {
    const held = gate();
    const [handle, calls] = await start({ plan: { concurrency: 1 }, fill: () => held.opened });
    await until(() => fillsOf(calls) === 1);
    await pull(handle, 'pause');
    held.open();
    await until(async () => (await progressOf(handle)).filled === 1);
    await pull(handle, 'stop');
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.stopped, result.filled, fillsOf(calls)], [true, 1, 1]);
  });
});
