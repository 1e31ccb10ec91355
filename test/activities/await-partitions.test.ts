import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { Client } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger, NativeConnection } from '@temporalio/worker';
import type { ActivityDeps } from '../../src/activities/activity-deps.js';
import { awaitPartitions } from '../../src/activities/await-partitions.js';
import type { AwaitedPartitions, AwaitPartitionsRequest } from '../../src/activities/messages.js';
import { MAX_CONCURRENCY, type PartitionState } from '../../src/contract.js';
import { fill } from '../../src/warehouse/fill.js';
import { ledgerId, registerPipeline } from '../../src/warehouse/ledger.js';
import { createTestDatabase } from '../support/database.js';
import { fillRequest, sqlPipeline, until, withWorker, within } from '../support/fill.js';
import { startPrivateTemporal, testTemporal } from '../support/temporal.js';
import { type InProcessWorkers, startWorkers, uniqueQueue } from '../support/workflow.js';

type Activity = ReturnType<typeof awaitPartitions>;

/** Nothing of it is asked where a backfill chooses no states. */
const NO_DEPS = {} as ActivityDeps;

describe('awaitPartitions', function () {
  this.timeout(300_000);
  let workers: InProcessWorkers;
  let connection: NativeConnection;
  /** As a worker's activities have it: over the worker's own kind of connection. */
  let client: Client;
  /** Questions to the server that it has not answered yet, and all that were asked. */
  const questions = { open: 0, asked: 0 };

  before(async () => {
    // First, since they silence the SDK.
    workers = await startWorkers({
      fills: {},
      control: {
        planPartition: async () => {
          throw ApplicationFailure.nonRetryable('as told', 'InvalidInput');
        },
      },
    });
    connection = await NativeConnection.connect({ address: (await testTemporal()).address });
    client = counting(new Client({ connection }));
  });
  after(async () => {
    await connection.close();
    await workers.stop();
  });

  /** A client that counts its long polls. */
  function counting(plain: Client): Client {
    const { workflowService } = plain;
    const poll = workflowService.getWorkflowExecutionHistory.bind(workflowService);
    const counted = async (request: Parameters<typeof poll>[0]) => {
      questions.open += 1;
      questions.asked += 1;
      try {
        return await poll(request);
      } finally {
        questions.open -= 1;
      }
    };
    workflowService.getWorkflowExecutionHistory = counted as typeof workflowService.getWorkflowExecutionHistory;
    return plain;
  }

  /** Starts runs that no worker takes, and returns their ids. */
  async function startRuns(count: number): Promise<string[]> {
    const name = randomBytes(6).toString('hex');
    const ids = Array.from({ length: count }, (_, i) => `awaited_${name}/${i}`);
    const taskQueue = uniqueQueue();
    await Promise.all(
      ids.map((workflowId) => client.workflow.start('partition', { workflowId, taskQueue, args: [{}] })),
    );
    return ids;
  }

  const end = (id: string) => client.workflow.getHandle(id).terminate('the test ends it');

  function waitFor(
    ids: readonly string[],
    activity: Activity = awaitPartitions(NO_DEPS),
    through = client,
  ): { readonly answer: Promise<AwaitedPartitions>; readonly cancel: () => void } {
    const environment = new MockActivityEnvironment({}, { client: through, logger: new DefaultLogger('ERROR') });
    const request = {
      pipeline: 'awaited',
      ledger: '',
      fingerprint: '',
      runs: ids.map((id) => ({ id, keys: [keyOf(id)] })),
    };
    const answer = environment.run<[AwaitPartitionsRequest], AwaitedPartitions, Activity>(activity, request);
    answer.catch(() => undefined);
    return { answer, cancel: () => environment.cancel() };
  }

  const keyOf = (id: string) => id.slice(id.lastIndexOf('/') + 1);
  const over = (...ids: string[]) => ({ ended: ids.map((id) => ({ id, wantedKeys: [keyOf(id)] })) });

  it('says which run has ended, the others going on, however it has ended', async () => {
    const ids = await startRuns(3);
    const [first = '', second = '', third = ''] = ids;
    const { answer } = waitFor(ids);
    await until('all are asked for', async () => questions.open >= 3);
    await end(second);
    assert.deepEqual(await within('the end of one', answer), over(second));
    await end(first);
    assert.deepEqual(await within('one that had ended before', waitFor([third, first]).answer), over(first));
    assert.deepEqual(await waitFor([]).answer, { ended: [] });
    await end(third);
  });

  it('a run that is not there has ended', async () => {
    const [running = ''] = await startRuns(1);
    const gone = `awaited_gone/${randomBytes(4).toString('hex')}`;
    assert.deepEqual(await within('no run', waitFor([running, gone]).answer), over(gone));
    await end(running);
  });

  it('a run that has failed has ended, and an ended one that a new run has followed goes on', async () => {
    const failed = `awaited_failed/${randomBytes(4).toString('hex')}`;
    const { taskQueue } = workers;
    const handle = await client.workflow.start('partition', { workflowId: failed, taskQueue, args: [{}] });
    assert.deepEqual(await within('a failure', waitFor([failed]).answer), over(failed));
    await assert.rejects(handle.result());
    const [id = ''] = await startRuns(1);
    await end(id);
    await client.workflow.start('partition', { workflowId: id, taskQueue: uniqueQueue(), args: [{}] });
    const { answer, cancel } = waitFor([id]);
    await until('it is asked for', async () => questions.open > 0);
    cancel();
    await assert.rejects(within('the newer run goes on', answer), CancelledFailure);
    await end(id);
  });

  it('cancelled, it ends at once, and asks no further', async () => {
    const ids = await startRuns(3);
    const asked = questions.asked;
    const { answer, cancel } = waitFor(ids);
    await until('all are asked for', async () => questions.asked === asked + 3);
    cancel();
    await assert.rejects(within('the cancel', answer), CancelledFailure);
    await until('the server has answered what was asked', async () => questions.open === 0);
    assert.equal(questions.asked, asked + 3);
    await Promise.all(ids.map(end));
  });

  it('a hundred runs that end one after the other are never asked for by more than a question each', async () => {
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', onWarning);
    const ids = await startRuns(MAX_CONCURRENCY);
    const activity = awaitPartitions(NO_DEPS);
    const left = new Set(ids);
    try {
      for (let round = 0; round < 10; round++) {
        const { answer } = waitFor([...left], activity);
        const [first = ''] = left;
        await end(first);
        for (const { id } of (await within('the end of one', answer)).ended) left.delete(id);
        assert.ok(!left.has(first));
        assert.ok(questions.open <= MAX_CONCURRENCY, `${questions.open} questions are open`);
      }
      assert.deepEqual(warnings, []);
    } finally {
      process.removeListener('warning', onWarning);
      await Promise.all([...left].map(end));
    }
  });

  it('says what of the keys the backfill would still fill', async () => {
    const test = await createTestDatabase();
    try {
      await test.sql('CREATE TABLE target (day date NOT NULL)');
      await withWorker(test, async (database) => {
        const pipeline = sqlPipeline('SELECT :date AS day');
        await registerPipeline(database, pipeline);
        await fill(database, fillRequest(pipeline, { key: '2024-02-01' }));
        const deps = {
          pipelines: new Map([[pipeline.name, pipeline]]),
          broken: new Map(),
          unregistered: new Map(),
          registerAgain: async () => undefined,
          withDatabase: (_place, use) => use(database),
        } satisfies Partial<ActivityDeps>;
        const environment = new MockActivityEnvironment({}, { client, logger: new DefaultLogger('ERROR') });
        const keys = ['2024-02-01', '2024-02-02'];
        const ask = async (only: AwaitPartitionsRequest['only'], fingerprint = pipeline.fingerprint) =>
          environment.run<[AwaitPartitionsRequest], AwaitedPartitions, Activity>(
            awaitPartitions(deps as unknown as ActivityDeps),
            {
              pipeline: 'target',
              ledger: await ledgerId(database),
              runs: [{ id: 'awaited/gone', keys }],
              only,
              fingerprint,
            },
          );
        const cases: readonly (readonly [PartitionState[] | undefined, string | undefined, string[]])[] = [
          [undefined, undefined, keys],
          [['missing'], undefined, ['2024-02-02']],
          [['failed'], undefined, []],
          [['outdated'], 'v1:another', ['2024-02-01']],
        ];
        for (const [only, fingerprint, wantedKeys] of cases) {
          assert.deepEqual(await ask(only as AwaitPartitionsRequest['only'], fingerprint), {
            ended: [{ id: 'awaited/gone', wantedKeys }],
          });
        }
      });
    } finally {
      await test.drop();
    }
  });

  it('Temporal away: it is to be tried again, and then answers', async () => {
    let temporal = await startPrivateTemporal();
    const dir = dirname(temporal.logFile);
    const lost = await NativeConnection.connect({ address: temporal.address });
    const workflowId = 'awaited_away/1';
    try {
      const away = new Client({ connection: lost });
      await away.workflow.start('partition', { workflowId, taskQueue: 'none', args: [{}] });
      const { answer } = waitFor([workflowId], awaitPartitions(NO_DEPS), counting(away));
      await until('it is asked for', async () => questions.open > 0);
      await temporal.kill();
      await assert.rejects(within('Temporal away', answer), (error: unknown) => {
        assert.ok(error instanceof ApplicationFailure);
        assert.deepEqual([error.type, error.nonRetryable], ['Conflict', false]);
        return true;
      });
      temporal = await startPrivateTemporal({ dir });
      const back = await NativeConnection.connect({ address: temporal.address });
      try {
        const again = waitFor([workflowId], awaitPartitions(NO_DEPS), new Client({ connection: back }));
        await new Client({ connection: back }).workflow.getHandle(workflowId).terminate();
        assert.deepEqual(await within('Temporal back', again.answer), over(workflowId));
      } finally {
        await back.close();
      }
    } finally {
      await lost.close();
      await temporal.stop();
    }
  });
});
