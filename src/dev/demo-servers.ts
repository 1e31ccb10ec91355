import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '@temporalio/client';
import { connectRepave, type RepaveClient } from '../client.js';
import { Failure } from '../failure.js';
import { type Environment, loadSettings } from '../settings.js';
import { type Database, openDatabase } from '../warehouse/database.js';
import { migrate } from '../warehouse/migrate.js';
import { bareEnvironment } from './bare-environment.js';
import { repaveFolder } from './dev-file.js';
import { exampleFile, loadExample } from './example.js';
import { startLocalPostgres } from './local-postgres.js';
import { cliHome, startLocalTemporal, workerPolls } from './local-temporal.js';
import { takeLock } from './lock.js';
import { logTail } from './log-tail.js';
import { onlyThisServer } from './only-this-server.js';
import { allSettledFirst } from './settled-first.js';
import { stateFolders } from './state-folder.js';
import { supervise, type Supervisor } from './supervise.js';
import { clearWorkerLeftover, startWorker, type WorkerPart } from './worker-process.js';

/** Where the demo's servers keep their state, and who is told of them. */
export interface DemoServersOptions {
  /** The folder in which `.repave/demo` keeps the demo's state. */
  readonly project: string;
  /** Only `PATH` and `TEMPORAL_CLI_PATH` matter: servers that the environment names are never touched. */
  readonly env: Environment;
  /** Told what happens. */
  readonly say: (line: string) => void;
}

/** What the demo works with, while it runs. */
export interface DemoServers {
  /** The folder of the demo's state. */
  readonly stateDir: string;
  /** With the ledger, the example's tables, and all its purchases in `sales`. */
  readonly database: Database;
  /** Starts the demo's one worker, on the pipelines of a project folder, and waits until it polls. */
  readonly startWorker: (project: string) => Promise<WorkerPart>;
  /** Hands a client to `use` and closes it. */
  readonly withClient: <T>(use: (repave: RepaveClient) => Promise<T>) => Promise<T>;
}

/** The folder of this package: the demo fills its own example, wherever it is started. */
export const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const TASK_QUEUE = 'repave';
/** Seconds that running fills get when the demo ends. */
const GRACE_S = 2;

/**
 * Brings up the demo's own servers over the state of the run before, loads the example's purchases, hands them to `use` and
 * stops everything again. Resolves to what `use` does, or to the signal that cut it short. Throws what went wrong; nothing is
 * left running then either.
 */
export async function withDemoServers<T>(
  options: DemoServersOptions,
  use: (servers: DemoServers) => Promise<T>,
): Promise<{ readonly value: T } | { readonly signal: NodeJS.Signals }> {
  const stateDir = join(repaveFolder(options.project), 'demo');
  const unlock = takeLock(join(stateDir, 'demo.lock'), '`repave demo`');
  try {
    return await supervise(
      (supervisor) => serve(options, stateDir, supervisor, use),
      (signal) => options.say(`${signal}: stopping … (once more ends it at once)`),
    );
  } finally {
    unlock();
  }
}

async function serve<T>(
  options: DemoServersOptions,
  stateDir: string,
  supervisor: Supervisor,
  use: (servers: DemoServers) => Promise<T>,
): Promise<T> {
  const { say } = options;
  const folders = stateFolders(stateDir, say);
  await clearWorkerLeftover(stateDir, say);
  say('Starting PostgreSQL and Temporal …');
  const [postgres, temporal] = await allSettledFirst([
    startLocalPostgres(folders, undefined, say).then((part) => {
      supervisor.add(part);
      return part;
    }),
    startLocalTemporal(folders, { home: cliHome(repaveFolder(options.project)), env: options.env, say }).then(
      (part) => {
        supervisor.add(part);
        return part;
      },
    ),
  ]);
  for (const line of temporal.server.tried) say(`  ${line}`);
  say(`PostgreSQL listens on 127.0.0.1:${postgres.server.port}, Temporal on ${temporal.server.address}.`);
  say(`Watch it work: ${temporal.ui}`);

  const servers = { databaseUrl: postgres.url, address: temporal.server.address };
  const connect = (): Promise<RepaveClient> =>
    connectRepave({ settings: loadSettings(onlyThisServer(servers.address), PACKAGE) });
  const database = await openDatabase(postgres.url, { fills: 1 });
  try {
    await migrate(database);
    const purchases = await loadExample(postgres.url, exampleFile(PACKAGE));
    say(`Loaded ${purchases.toLocaleString('en-US')} purchases into the table sales.`);
    const withClient = async <U>(work: (repave: RepaveClient) => Promise<U>): Promise<U> => {
      const repave = await connect();
      try {
        return await work(repave);
      } finally {
        await repave.close();
      }
    };
    return await use({
      stateDir,
      database,
      withClient,
      startWorker: async (project) => {
        const worker = await startDemoWorker(options, stateDir, { ...servers, project }, supervisor);
        await withClient((repave) => untilWorkerPolls(repave.temporal, workerLog(stateDir)));
        return worker;
      },
    });
  } finally {
    await database.close();
  }
}

async function startDemoWorker(
  options: DemoServersOptions,
  dir: string,
  {
    databaseUrl,
    address,
    project,
  }: { readonly databaseUrl: string; readonly address: string; readonly project: string },
  supervisor: Supervisor,
): Promise<WorkerPart> {
  const worker = await startWorker({
    dir,
    logFile: workerLog(dir),
    graceMs: GRACE_S * 1000,
    env: bareEnvironment({
      DATABASE_URL: databaseUrl,
      ...onlyThisServer(address),
      REPAVE_PROJECT: project,
      REPAVE_TASK_QUEUE: TASK_QUEUE,
      REPAVE_SHUTDOWN_GRACE: String(GRACE_S),
    }),
    onStart: (pid) =>
      options.say(`A worker runs, pid ${pid}. Kill it if you like (kill -9 ${pid}): another takes over.`),
    restart: (how) => {
      options.say(`The worker ended (${how}).`);
      // One that somebody killed is followed by another; one that gave up by itself would give up again.
      return how.startsWith('signal');
    },
  });
  supervisor.add(worker);
  return worker;
}

async function untilWorkerPolls(client: Client, log: string): Promise<void> {
  if (await workerPolls(client, TASK_QUEUE, 120_000)) return;
  throw new Failure(
    'InvalidInput',
    `The worker does not poll its task queue. Its log, ${log}, ends with:\n${logTail(log)}`,
  );
}

function workerLog(dir: string): string {
  return join(dir, 'worker.log');
}
