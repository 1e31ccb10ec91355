import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type WorkflowBundle,
} from '@temporalio/worker';
import { controlQueue } from '../../src/contract.js';
import { testTemporal } from './temporal.js';

const quiet = new DefaultLogger('ERROR');
let bundle: Promise<WorkflowBundle> | undefined;

/** The workflows, bundled from source once a test process. */
export function workflowBundle(): Promise<WorkflowBundle> {
  const workflowsPath = fileURLToPath(new URL('../../src/workflows/index.ts', import.meta.url));
  bundle ??= bundleWorkflowCode({ workflowsPath, logger: quiet });
  return bundle;
}

/** A task queue that no other test uses. */
export function uniqueQueue(): string {
  return `test-${randomBytes(8).toString('hex')}`;
}

/** A client of the run's shared Temporal server; close its connection. */
export async function testClient(address?: string): Promise<Client> {
  const connection = await Connection.connect({ address: address ?? (await testTemporal()).address });
  return new Client({ connection });
}

export interface InProcessWorkers {
  readonly taskQueue: string;
  /** Ends both workers and their connection. */
  stop(): Promise<void>;
}

/** Two workers in this process, with the product's workflows and activities of the test's own. */
export async function startWorkers(options: {
  readonly fills: object;
  readonly control: object;
  readonly taskQueue?: string;
  readonly slots?: number;
}): Promise<InProcessWorkers> {
  silenceRuntime();
  const connection = await NativeConnection.connect({ address: (await testTemporal()).address });
  const taskQueue = options.taskQueue ?? uniqueQueue();
  const common = { connection, maxHeartbeatThrottleInterval: '1s' } as const;
  const workers = [
    await Worker.create({
      ...common,
      workflowBundle: await workflowBundle(),
      taskQueue,
      activities: options.fills,
      maxConcurrentActivityTaskExecutions: options.slots ?? 100,
    }),
    await Worker.create({ ...common, taskQueue: controlQueue(taskQueue), activities: options.control }),
  ];
  const runs = workers.map((worker) => worker.run());
  return {
    taskQueue,
    stop: async () => {
      for (const worker of workers) worker.shutdown();
      await Promise.all(runs);
      await connection.close();
    },
  };
}

let silenced = false;

/** Keeps the SDK's own lines out of a test's output. */
export function silenceRuntime(): void {
  if (silenced) return;
  silenced = true;
  Runtime.install({
    logger: quiet,
    shutdownSignals: [],
    telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' } } },
  });
}
