import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { RepaveClient } from '../../src/client.js';
import { longCall } from '../../src/client/abortable-call.js';
import { testTemporal } from '../support/temporal.js';
import { silenceRuntime, uniqueQueue } from '../support/workflow.js';
import { until } from '../workflows/scripted.js';
import { steerableWorker } from './steered-client.js';

describe('signals that end a call', function () {
  this.timeout(600_000);
  let connection: Connection;
  let repave: RepaveClient;
  /** Calls to the server that have not ended. */
  const open = new Set<string>();
  /** Called once a call has its answer, before its caller has. */
  let answered: (method: string) => void = () => undefined;

  before(async () => {
    silenceRuntime();
    connection = await Connection.connect({ address: (await testTemporal()).address });
    repave = new RepaveClient(new Client({ connection: watched(connection) }), uniqueQueue(), false);
  });
  after(() => connection.close());
  afterEach(() => (answered = () => undefined));

  /** The connection, with a look at its calls. */
  function watched(real: Connection): Connection {
    const { workflowService } = real;
    const service = new Proxy(workflowService, {
      get(target, name): unknown {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]): Promise<unknown> => {
          const call = `${String(name)} ${randomUUID()}`;
          open.add(call);
          try {
            return await (method as (...args: unknown[]) => Promise<unknown>).apply(target, args);
          } finally {
            open.delete(call);
            answered(String(name));
          }
        };
      },
    });
    return Object.create(real, { workflowService: { value: service } }) as Connection;
  }

  /** A run that no worker takes, and its handle. */
  async function start(input: object = {}): Promise<ReturnType<RepaveClient['handle']>> {
    const id = `backfill/x/${randomUUID()}`;
    const args = [{ pipeline: 'x', ...input }];
    const { taskQueue, temporal } = repave;
    const { firstExecutionRunId } = await temporal.workflow.start('backfill', { workflowId: id, taskQueue, args });
    return repave.handle(id, firstExecutionRunId);
  }

  const reason = new Error('enough');

  it('end a wait for the result with their reason, and nothing about the run', async () => {
    const handle = await start();
    const controller = new AbortController();
    const waiting = assert.rejects(handle.result({ signal: controller.signal }), reason);
    await until(() => open.size === 1);
    controller.abort(reason);
    await waiting;
    await until(() => open.size === 0);
    await assert.rejects(handle.result({ signal: controller.signal }), reason);
    await assert.rejects(handle.progress({ signal: controller.signal }), reason);
    assert.equal((await repave.temporal.workflow.getHandle(handle.id).describe()).status.name, 'RUNNING');
    await handle.cancel();
  });

  it('end a wait for progress, a plan, and following', async () => {
    const handle = await start();
    const calls: ((signal: AbortSignal) => Promise<unknown>)[] = [
      (signal) => handle.progress({ signal }),
      (signal) => repave.plan({ pipeline: 'x', last: 1 }, { id: `${handle.id}+dry-run`, signal }),
      (signal) => handle.follow({ signal }).next(),
    ];
    for (const call of calls) {
      const controller = new AbortController();
      const waiting = assert.rejects(call(controller.signal), reason);
      await until(() => [...open].some((name) => /^(queryWorkflow|getWorkflowExecutionHistory) /.test(name)));
      controller.abort(reason);
      await waiting;
      await until(() => open.size === 0);
    }
    for (const id of [handle.id, `${handle.id}+dry-run`]) await repave.temporal.workflow.getHandle(id).terminate();
  });

  it('leave no wait behind where one only stops following', async () => {
    const stop = await steerableWorker(repave.taskQueue);
    try {
      const handle = await start();
      const seen: string[] = [];
      for await (const { phase } of handle.follow({ everyMs: 50 })) {
        seen.push(phase);
        await until(() => open.size === 1);
        break;
      }
      assert.deepEqual(seen, ['filling']);
      await until(() => open.size === 0);
      await handle.stop();
    } finally {
      await stop();
    }
  });

  it('are given anew to a wait that is long, which goes on with one call at a time', async () => {
    const stop = await steerableWorker(repave.taskQueue);
    try {
      const handle = await start();
      let begun = 0;
      // Each call is long enough for a slow machine to be told of the end by the one that meets it.
      const wait = longCall(
        repave.temporal,
        new AbortController().signal,
        () => {
          begun += 1;
          return repave.temporal.workflow.getHandle(handle.id).result();
        },
        1_000,
      );
      await until(() => begun >= 4);
      assert.ok(open.size <= 1, [...open].join(', '));
      await handle.stop();
      await wait;
    } finally {
      await stop();
    }
  });

  it('end also what they were aborted between two requests of', async () => {
    const stop = await steerableWorker(repave.taskQueue);
    try {
      const handle = await start({ runMs: 100 });
      const controller = new AbortController();
      let polls = 0;
      answered = (method) => {
        if (method === 'getWorkflowExecutionHistory' && ++polls === 2) controller.abort(reason);
      };
      await assert.rejects(handle.result({ signal: controller.signal }), reason);
      await until(() => open.size === 0);
      answered = () => undefined;
      // Its runs are too short for a slow machine to pull a lever of one.
      await repave.temporal.workflow.getHandle(handle.id).terminate();
    } finally {
      await stop();
    }
  });
});
