import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger, NativeConnection } from '@temporalio/worker';
import { awaitRun } from '../../src/activities/await-run.js';
import type { AwaitedRun, AwaitRunRequest } from '../../src/activities/messages.js';
import { beating, scripted } from '../workflows/scripted.js';
import { testTemporal } from '../support/temporal.js';
import { type InProcessWorkers, startWorkers, uniqueQueue } from '../support/workflow.js';

const HELD = '2024-01-03';

describe('awaitRun', function () {
  this.timeout(300_000);
  let connection: NativeConnection;
  let client: Client;
  let workers: InProcessWorkers;
  /** Keys whose fills have begun; that of `HELD` waits until it is let go. */
  const begun: string[] = [];
  let letGo = (): void => undefined;

  before(async () => {
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const { fills, control } = scripted({
      keys: ['2024-01-01', '2024-01-02', HELD],
      plan: { concurrency: 1 },
      fill: async (key) => {
        begun.push(key);
        if (key === HELD) await held;
      },
    });
    // First, since they silence the SDK.
    workers = await startWorkers({ fills: beating(fills), control });
    connection = await NativeConnection.connect({ address: (await testTemporal()).address });
    client = new Client({ connection });
  });
  after(async () => {
    letGo();
    await connection.close();
    await workers.stop();
  });

  const newId = (): string => `awaited/${randomBytes(6).toString('hex')}`;
  const start = (workflowId: string, taskQueue = uniqueQueue(), ...args: readonly unknown[]) =>
    client.workflow.start('backfill', { workflowId, taskQueue, args: [...args] });

  /** Begins to wait as a worker does. */
  function wait(request: AwaitRunRequest): { readonly answer: Promise<AwaitedRun>; readonly cancel: () => void } {
    const environment = new MockActivityEnvironment({}, { client, logger: new DefaultLogger('ERROR') });
    const answer = environment.run<[AwaitRunRequest], AwaitedRun, ReturnType<typeof awaitRun>>(awaitRun(), request);
    return { answer, cancel: () => environment.cancel('CANCELLED') };
  }

  it('answers once the run has ended, whatever it comes to, and at once where it has', async () => {
    const id = newId();
    const run = await start(id);
    const { answer } = wait({ id, comesWithinMs: 0 });
    let over = false;
    void answer.then(() => (over = true));
    await client.workflow.getHandle(id).describe();
    assert.equal(over, false);
    await run.terminate('the test ends it');
    assert.deepEqual(await answer, { found: true });
    assert.deepEqual(await wait({ id, comesWithinMs: 0 }).answer, { found: true });
  });

  it('waits for one that is not there yet, and no longer than it is told', async () => {
    const id = newId();
    assert.deepEqual(await wait({ id, comesWithinMs: 0 }).answer, { found: false });
    const { answer } = wait({ id, comesWithinMs: 600_000 });
    const run = await start(id);
    await run.terminate('the test ends it');
    assert.deepEqual(await answer, { found: true });
  });

  it('goes on waiting where the run continues as new', async () => {
    const id = newId();
    await start(id, workers.taskQueue, {}, { partitionsPerRun: 1 });
    const { answer } = wait({ id, comesWithinMs: 0 });
    let over = false;
    void answer.then(() => (over = true));
    while (!begun.includes(HELD)) await client.workflow.getHandle(id).describe();
    assert.equal(over, false);
    letGo();
    assert.deepEqual(await answer, { found: true });
    assert.equal((await client.workflow.getHandle(id).describe()).status.name, 'COMPLETED');
  });

  it('ends with a cancel', async () => {
    const id = newId();
    const run = await start(id);
    for (const request of [
      { id, comesWithinMs: 0 },
      { id: newId(), comesWithinMs: 50_000 },
    ]) {
      const { answer, cancel } = wait(request);
      cancel();
      await assert.rejects(answer, CancelledFailure);
    }
    await run.terminate('the test ends it');
  });
});
