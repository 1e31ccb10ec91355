import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '@temporalio/client';
import { connectRepave } from '../client.js';
import type { BackfillInput, BackfillResult, Progress } from '../contract.js';
import { Failure } from '../failure.js';
import { type Environment, loadSettings } from '../settings.js';
import { openDatabase } from '../warehouse/database.js';
import { migrate } from '../warehouse/migrate.js';
import { bareEnvironment } from './bare-environment.js';
import { type DemoReport, readReport } from './demo-report.js';
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
import { clearWorkerLeftover, startWorker } from './worker-process.js';

/** What the demo fills: every date of the example. */
export const DEMO_BACKFILL = {
  pipeline: 'sales_summary',
  from: '1997-01-01',
  to: '1998-06-30',
} as const satisfies BackfillInput;

export interface DemoOptions {
  /** The folder in which `.repave/demo` keeps the demo's state. */
  readonly project: string;
  /** Only `PATH` and `TEMPORAL_CLI_PATH` matter: servers that the environment names are never touched. */
  readonly env: Environment;
  /** Told what happens. */
  readonly say: (line: string) => void;
  /** Called when the backfill begins. */
  readonly onFilling: () => void;
  readonly onProgress: (progress: Progress) => void;
  /** Called when the backfill has ended, before anything is stopped. */
  readonly onFilled: () => void;
}

export interface DemoOutcome {
  readonly result: BackfillResult;
  readonly report: DemoReport;
}

/** The folder of this package: the demo fills its own example, wherever it is started. */
const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const TASK_QUEUE = 'repave';

/**
 * Brings up servers and a worker of its own, loads the example, fills every date of it and stops everything again.
 * Resolves to what was filled, or to the signal that cut it short. Throws what went wrong; nothing is left running then
 * either. Its state stays, and a second run goes over it again.
 */
export async function runDemo(
  options: DemoOptions,
): Promise<{ readonly value: DemoOutcome } | { readonly signal: NodeJS.Signals }> {
  const stateDir = join(repaveFolder(options.project), 'demo');
  const unlock = takeLock(join(stateDir, 'demo.lock'), '`repave demo`');
  try {
    return await supervise(
      (supervisor) => demo(options, stateDir, supervisor),
      (signal) => options.say(`${signal}: stopping … (once more ends it at once)`),
    );
  } finally {
    unlock();
  }
}

async function demo(options: DemoOptions, stateDir: string, supervisor: Supervisor): Promise<DemoOutcome> {
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

  const database = await openDatabase(postgres.url, { fills: 1 });
  try {
    await migrate(database);
    const purchases = await loadExample(postgres.url, exampleFile(PACKAGE));
    say(`Loaded ${purchases.toLocaleString('en-US')} purchases into the table sales.`);

    await startDemoWorker(
      options,
      stateDir,
      { databaseUrl: postgres.url, address: temporal.server.address },
      supervisor,
    );
    const repave = await connectRepave({ settings: loadSettings(onlyThisServer(temporal.server.address), PACKAGE) });
    try {
      await untilWorkerPolls(repave.temporal, workerLog(stateDir));
      options.onFilling();
      const backfill = await repave.backfill(DEMO_BACKFILL);
      if (backfill.joined) say('A backfill that an earlier run left unfinished goes on.');
      for await (const progress of backfill.follow()) options.onProgress(progress);
      options.onFilled();
      return { result: await backfill.result(), report: await readReport(database) };
    } finally {
      await repave.close();
    }
  } finally {
    await database.close();
  }
}

async function startDemoWorker(
  options: DemoOptions,
  dir: string,
  servers: { readonly databaseUrl: string; readonly address: string },
  supervisor: Supervisor,
): Promise<void> {
  const worker = await startWorker({
    dir,
    logFile: workerLog(dir),
    env: bareEnvironment({
      DATABASE_URL: servers.databaseUrl,
      ...onlyThisServer(servers.address),
      REPAVE_PROJECT: PACKAGE,
      REPAVE_TASK_QUEUE: TASK_QUEUE,
      REPAVE_SHUTDOWN_GRACE: '2',
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
