import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker, type WorkflowBundle } from '@temporalio/worker';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { testTemporal } from '../support/temporal.js';
import { uniqueQueue } from '../support/workflow.js';

let bundle: Promise<WorkflowBundle> | undefined;

/** A client of the run's Temporal server on a task queue of its own. */
export async function testRepave(): Promise<RepaveClient> {
  const { address } = await testTemporal();
  return connectRepave({ settings: loadSettings(onlyThisServer(address)), taskQueue: uniqueQueue() });
}

/** Starts a worker that runs the workflow of `steerable.ts`. Returns what stops it. */
export async function steerableWorker(taskQueue: string): Promise<() => Promise<void>> {
  const workflowsPath = fileURLToPath(new URL('./steerable.ts', import.meta.url));
  bundle ??= bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
  const connection = await NativeConnection.connect({ address: (await testTemporal()).address });
  const worker = await Worker.create({ connection, workflowBundle: await bundle, taskQueue });
  const ended = worker.run();
  return async () => {
    worker.shutdown();
    await ended;
    await connection.close();
  };
}
