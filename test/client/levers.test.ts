import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { BackfillHandle, Failure, Pulled, RepaveClient } from '../../src/client.js';
import { until } from '../chaos/until.js';
import { silenceRuntime } from '../support/workflow.js';
import { type Arrived, type SteerableInput, UNWANTED } from './steerable.js';
import { steerableWorker, testRepave } from './steered-client.js';

describe('the levers of a backfill', function () {
  this.timeout(600_000);
  let repave: RepaveClient;
  let stopWorker: (() => Promise<void>) | undefined;

  before(async () => {
    silenceRuntime();
    repave = await testRepave();
  });
  after(() => repave.close());
  beforeEach(work);
  afterEach(async () => {
    await stopWorker?.();
    stopWorker = undefined;
  });

  async function work(): Promise<void> {
    stopWorker = await steerableWorker(repave.taskQueue);
  }

  async function rest(): Promise<void> {
    await stopWorker?.();
    stopWorker = undefined;
  }

  async function start(
    input: Partial<SteerableInput> = {},
    id = `backfill/x/${randomUUID()}`,
  ): Promise<BackfillHandle> {
    const { taskQueue, temporal } = repave;
    const args = [{ pipeline: 'x', ...input }];
    const { firstExecutionRunId } = await temporal.workflow.start('backfill', { workflowId: id, taskQueue, args });
    return repave.handle(id, firstExecutionRunId);
  }

  /** All that has arrived at a run, in its order. */
  const arrived = (handle: BackfillHandle): Promise<Arrived[]> =>
    repave.temporal.workflow.getHandle(handle.id).query<Arrived[]>('arrived');

  it('answer with what is in force', async () => {
    const handle = await start();
    let pulled = 0;
    // On a slow machine a worker may not answer within 5 s the first time.
    const answered = (pull: () => Promise<Pulled>): Promise<Pulled> =>
      until('an answer', async () => {
        pulled += 1;
        const answer = await pull();
        return answer.sent === 'update' && answer;
      });
    const steered = { sent: 'update', steered: { concurrency: 4, stopping: false } };
    assert.deepEqual(await answered(() => handle.pause('the disk is full')), steered);
    assert.deepEqual(await answered(() => handle.pause()), steered);
    assert.deepEqual(await answered(() => handle.setConcurrency(100)), steered);
    assert.deepEqual(await answered(() => handle.retryFailed()), steered);
    assert.deepEqual(await answered(() => handle.resume()), steered);
    const stopped = await handle.stop();
    if (stopped.sent === 'update') assert.deepEqual(stopped.steered, { concurrency: 4, stopping: true });
    const pulls = await arrivedInAll(handle);
    const inTurn = pulls.map(({ lever, input }) => [lever, input]);
    assert.deepEqual(
      inTurn.filter((one, i) => !isDeepStrictEqual(one, inTurn[i - 1])),
      [
        ['pause', { reason: 'the disk is full' }],
        ['pause', {}],
        ['setConcurrency', { concurrency: 100 }],
        ['retryFailed', {}],
        ['resume', {}],
        ['stop', {}],
      ],
    );
    assert.equal(new Set(pulls.map(({ id }) => id)).size, pulled + 1, 'each under an id of its own');
  });

  it('refuse a wrong argument before anything is sent', async () => {
    const nowhere = repave.handle('backfill/x/nowhere');
    const wrong: [() => Promise<Pulled>, RegExp][] = [
      [() => nowhere.pause(''), /The reason is empty: expected a text of 1 to 200 characters, or none\./],
      [() => nowhere.pause('x'.repeat(201)), /The reason has 201 characters/],
      [() => nowhere.pause(7 as unknown as string), /The reason is number/],
      [() => nowhere.setConcurrency(0), /The concurrency is 0: expected a whole number from 1 to 100\./],
      [() => nowhere.setConcurrency(101), /is 101/],
      [() => nowhere.setConcurrency(1.5), /is 1\.5/],
      [() => nowhere.setConcurrency('4' as unknown as number), /is string/],
    ];
    for (const [pull, message] of wrong)
      await assert.rejects(pull(), { name: 'Failure', type: 'InvalidInput', message });
    await assert.rejects(nowhere.pause('x'.repeat(200)), { name: 'WorkflowNotFoundError' });
  });

  it('are refused in the words of the workflow', async () => {
    const handle = await start();
    // One that no worker has answered within 5 s is kept as a signal, which this workflow does not judge.
    const refusal: unknown = await until('a refusal', () =>
      handle.setConcurrency(UNWANTED).then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    const { name, type, message } = refusal as Failure;
    assert.deepEqual(
      [name, type, message],
      ['Failure', 'InvalidInput', 'The concurrency is 13: expected another.'],
      String(refusal),
    );
    assert.deepEqual(
      (await arrived(handle)).filter(({ by }) => by === 'update'),
      [],
    );
    await handle.stop();
  });

  it('wait 5 s for a worker, and are then kept until one runs, which gets them under one id', async () => {
    await rest();
    const handle = await start();
    const pulled = await Promise.all([handle.pause('night'), handle.setConcurrency(2)]);
    assert.deepEqual(pulled, [{ sent: 'signal' }, { sent: 'signal' }]);
    await work();
    await handle.stop();
    const pulls = await arrivedInAll(handle);
    for (const [lever, input] of [
      ['pause', { reason: 'night' }],
      ['setConcurrency', { concurrency: 2 }],
    ] as const) {
      // The update may have been waiting too.
      const own = pulls.filter((pull) => pull.lever === lever);
      assert.ok(own.some(({ by }) => by === 'signal'));
      assert.equal(new Set(own.map(({ id }) => id)).size, 1);
      for (const pull of own) assert.deepEqual(pull.input, input);
    }
  });

  it('say of a run that has ended that it has', async () => {
    const handle = await start();
    await handle.stop();
    await arrivedInAll(handle);
    await assert.rejects(handle.resume(), {
      name: 'Failure',
      type: 'InvalidInput',
      message: `${handle.id} has ended as completed, and can be steered no more.`,
    });
    const terminated = await start();
    await repave.temporal.workflow.getHandle(terminated.id).terminate();
    await assert.rejects(terminated.setConcurrency(3), { message: /has ended as terminated/ });
  });

  it('say of what is no backfill that it is none', async () => {
    const { taskQueue, temporal } = repave;
    const workflowId = `x/${randomUUID()}`;
    const partition = await temporal.workflow.start('partition', { workflowId, taskQueue });
    await assert.rejects(repave.handle(workflowId).pause(), { type: 'InvalidInput', message: /of type partition/ });
    await partition.terminate();
  });

  it('reach no later backfill of the same id: neither as an update nor as a signal', async () => {
    const first = await start();
    const joined = repave.handle(first.id, first.runId);
    await first.stop();
    await arrivedInAll(first);
    const later = await start({}, first.id);
    for (const handle of [first, joined]) {
      await assert.rejects(handle.stop(), { type: 'InvalidInput', message: /Another was started under its id/ });
    }
    assert.deepEqual(await arrived(later), []);
    await later.stop();

    await rest();
    const old = await start();
    await repave.temporal.workflow.getHandle(old.id).terminate();
    const another = await start({}, old.id);
    await assert.rejects(old.pause(), { type: 'InvalidInput', message: /Another was started under its id/ });
    await work();
    assert.deepEqual(await arrived(another), []);
    await another.stop();
  });

  it('and so does a cancel: it reaches the run that was named, and none of its id that starts later', async () => {
    const first = await start();
    await first.stop();
    await arrivedInAll(first);
    const later = await start({}, first.id);
    await assert.rejects(repave.handle(first.id, first.runId).cancel(), { name: 'WorkflowNotFoundError' });
    await later.stop();
    // Which is pulled once, however often it arrives.
    const ids = (await arrivedInAll(later)).map(({ id }) => id);
    assert.equal(new Set(ids).size, 1, 'it was stopped, not cancelled');

    const long = await start({ runMs: 200 });
    await until('a second run', async () => (await runsOf(long)) > 1);
    await long.cancel();
    await assert.rejects(long.result(), { name: 'BackfillFailed', type: 'Cancelled' });
  });

  // Runs long enough for a slow machine to find one and pull its lever before it goes on as another.
  for (const [what, input] of [
    ['that answer at once', { runMs: 1_000 }],
    ['that answer late', { runMs: 1_000, answerMs: 300 }],
  ] as const) {
    it(`in bursts across continue-as-new lose none, and repeat none under another id: levers ${what}`, async () => {
      const handle = await start(input);
      let pulled = 0;
      // However fast the machine is: until runs have followed each other.
      const burst = async (lane: number): Promise<void> => {
        for (let n = 0; n < 8 || (await runsOf(handle)) < 3; n++, pulled++) await handle.setConcurrency(20 + lane);
      };
      await Promise.all(Array.from({ length: 4 }, (_, lane) => burst(lane)));
      await handle.stop();
      const pulls = await arrivedInAll(handle);
      const ids = pulls.filter(({ lever }) => lever === 'setConcurrency').map(({ id }) => id);
      assert.equal(new Set(ids).size, pulled);
    });
  }

  it('whose answer a continue-as-new has cut off are sent to the next run, under the same id', async () => {
    const handle = await start({ runMs: 500, answerMs: 60_000 });
    let pulled = 0;
    // On a slow machine not even two runs follow each other in 5 s.
    await until('one that has come to several runs, and then as a signal', async () => {
      pulled += 1;
      // No run lives to answer: after 5 s it is left with Temporal.
      assert.deepEqual(await handle.pause(), { sent: 'signal' });
      const times = new Map<string, number>();
      for (const { id } of await arrived(handle)) times.set(id, (times.get(id) ?? 0) + 1);
      return [...times.values()].some((count) => count > 2);
    });
    await handle.stop();
    const pulls = (await arrivedInAll(handle)).filter(({ lever }) => lever === 'pause');
    assert.equal(new Set(pulls.map(({ id }) => id)).size, pulled);
  });

  /** All that has arrived at a backfill that was stopped. */
  async function arrivedInAll({ id, runId }: BackfillHandle): Promise<Arrived[]> {
    return (await repave.temporal.workflow.getHandle(id, runId).result()) as Arrived[];
  }

  async function runsOf({ id, runId }: BackfillHandle): Promise<number> {
    let runs = 0;
    for (let run = runId; run; runs++) {
      const { events } = await repave.temporal.workflow.getHandle(id, run).fetchHistory();
      run = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? undefined;
    }
    return runs;
  }
});
