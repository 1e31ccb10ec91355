import { join } from 'node:path';
import { type Client, Connection } from '@temporalio/client';
import { controlQueue } from '../contract.js';
import type { Environment } from '../settings.js';
import { createCommand, registerSearchAttributes } from '../temporal/search-attributes.js';
import { temporalServer } from '../temporal/temporal-server.js';
import { onlyThisServer } from './only-this-server.js';
import { delay } from './owned-process.js';
import type { StateFolders } from './state-folder.js';
import type { Part } from './supervise.js';
import { startTemporal, type TemporalServer } from './temporal-server.js';

/** A Temporal dev server with its UI, as a part to be stopped. */
export interface LocalTemporal extends Part {
  readonly server: TemporalServer;
  readonly ui: string;
}

/**
 * Starts a Temporal dev server with its UI over `folders.temporal`, on the ports given where they are free, and gives it the
 * search attributes.
 */
export async function startLocalTemporal(
  folders: StateFolders,
  options: {
    readonly home: string;
    readonly env: Environment;
    readonly ports?: { readonly frontend: number; readonly ui: number };
    readonly say: (line: string) => void;
  },
): Promise<LocalTemporal> {
  const { home, env, ports, say } = options;
  const server = await startTemporal({
    dir: folders.temporal,
    home,
    env,
    port: ports?.frontend,
    uiPort: ports?.ui,
    persistent: true,
    ui: true,
    say,
  });
  const ui = server.ui ?? '';
  if (ports && !server.address.endsWith(`:${ports.frontend}`))
    say(`Port ${ports.frontend} is taken: Temporal listens on ${server.address}.`);
  if (ports && !ui.endsWith(`:${ports.ui}`)) say(`Port ${ports.ui} is taken: Temporal's UI is at ${ui}`);
  await makeSearchable(server.address, say);
  return {
    name: "Temporal's server",
    server,
    ui,
    ended: server.ended,
    logFile: server.logFile,
    stop: (hard) => (hard ? server.kill() : server.stop()),
  };
}

/** Where it fails that is said, and no more: everything else works without. */
async function makeSearchable(address: string, say: (line: string) => void): Promise<void> {
  const { connectionOptions, namespace } = temporalServer({ env: onlyThisServer(address) });
  let state = 'unknown';
  try {
    const connection = await Connection.connect(connectionOptions);
    try {
      state = (await registerSearchAttributes(connection, namespace)).now.state;
    } finally {
      await connection.close();
    }
  } catch {
    // The state says it.
  }
  if (state !== 'there') say(`Temporal lacks search attributes. Add them with: ${createCommand(namespace)}`);
}

/** Resolves to true once a worker polls the task queue and its control queue, to false after `limitMs`. */
export async function workerPolls(client: Client, taskQueue: string, limitMs: number): Promise<boolean> {
  const polled = async (name: string, taskQueueType: number): Promise<boolean> => {
    const { namespace } = client.options;
    const { pollers } = await client.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name },
      taskQueueType,
    });
    return (pollers ?? []).length > 0;
  };
  for (const until = Date.now() + limitMs; Date.now() < until; await delay(200)) {
    if ((await polled(taskQueue, WORKFLOW_TASKS)) && (await polled(controlQueue(taskQueue), ACTIVITY_TASKS)))
      return true;
  }
  return false;
}

/** `TASK_QUEUE_TYPE_…` of Temporal's API. */
const WORKFLOW_TASKS = 1;
const ACTIVITY_TASKS = 2;

/** Where a Temporal CLI that has been fetched is kept, for `dev`, the demo and the tests of one project alike. */
export function cliHome(stateDir: string): string {
  return join(stateDir, 'temporal-cli');
}
