import { NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import { createControlActivities, createFillActivities } from '../activities/create-activities.js';
import type { ActivityDeps } from '../activities/activity-deps.js';
import { controlQueue } from '../contract.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, hasDatabaseUrl, type Settings } from '../settings.js';
import { createLog, temporalLogger, type Log } from '../telemetry/log.js';
import { searchAttributesState } from '../temporal/search-attributes.js';
import { notifyHooks } from '../telling/hooks.js';
import { temporalUnreachable } from '../temporal/server-unreachable.js';
import { temporalServer, type TemporalServer } from '../temporal/temporal-server.js';
import type { CarriedOver } from '../warehouse/carry-over.js';
import { registeredPipelines, registerPipeline } from '../warehouse/ledger.js';
import { checkLedger } from './check-ledger.js';
import { Databases } from './databases.js';
import { firstConnection, isUnreachable } from './first-connection.js';
import { rememberedYes } from './remembered-yes.js';
import { disorderOf, readPipelines, registerAgain, registerServed, type ServedPipelines } from './served-pipelines.js';
import { workflowCode } from './workflow-code.js';

/** Activities that plan, wait and record, at once in one worker. They hold a connection for a statement, if at all. */
const CONTROL_SLOTS = 500;
/** What a stopping worker waits beyond its grace for rollbacks, before it gives up on them. */
const FORCE_AFTER_MS = 15_000;

/** The message of the one line that says that a worker polls. */
export const READY = 'Worker is ready';

/**
 * Runs a worker until `signal` is aborted, then ends gracefully: running fills get `settings.shutdownGraceMs`, then they are
 * rolled back for another worker to do. Serves workflows and fills on the task queue, and everything that plans and waits on
 * its control queue. Throws `ServerUnreachable` or `DatabaseUnavailable` where a server does not answer within
 * `settings.connectWaitMs`, `InvalidInput` where the set-up is wrong.
 */
export async function runWorker(settings: Settings, signal: AbortSignal, log: Log = createLog()): Promise<void> {
  try {
    await serve(settings, signal, log);
  } catch (error) {
    // Asked to stop before it had begun.
    if (!signal.aborted || error !== signal.reason) throw error;
  }
}

async function serve(settings: Settings, signal: AbortSignal, log: Log): Promise<void> {
  const server = temporalServer(settings);
  const hooks = notifyHooks(settings);
  const served = await readPipelines(settings, log);
  const databases = new Databases(settings, async (database, url) => {
    await checkLedger(database, log);
    await registerServed(served, settings, database, url, log);
  });
  // Another's database, read and nothing else: it has no ledger of ours.
  const sources = new Databases(settings, async () => undefined, { readOnly: true });
  try {
    await openDatabases(databases, served, settings, signal, log);
    // Not before it is needed: the SDK's threads would keep a process alive that cannot start.
    installRuntime(log);
    const connection = await firstConnection(() => connect(server), { waitMs: settings.connectWaitMs, signal, log });
    try {
      const deps: ActivityDeps = {
        ...served,
        hooks,
        withDatabase: (pipeline, use) => databases.with(pipeline, use),
        withSource: ({ source }, use) =>
          source === undefined ? use(undefined) : sources.with({ database: source }, use),
        hasUrl: (variable) => hasDatabaseUrl(settings, variable),
        hasSearchAttributes: rememberedYes(async () => {
          const { state } = await searchAttributesState(connection, server.namespace);
          return state === 'there';
        }),
        registerAgain: (name) => registerAgain(served, name, (pipeline) => register(served, databases, pipeline), log),
      };
      const workers = await createWorkers(settings, connection, server, deps);
      const { taskQueue, fills } = settings;
      const pipelines = [...served.pipelines.keys()].sort();
      const ready = {
        taskQueue,
        fills,
        pipelines,
        ...(hooks.length > 0 ? { notifies: hooks.map(({ kind }) => kind) } : {}),
        temporal: server.address,
        namespace: server.namespace,
        pid: process.pid,
      };
      await runAll(workers, signal, () => log.info(ready, READY));
    } finally {
      await connection.close();
    }
  } finally {
    await databases.close();
    await sources.close();
  }
}

/** Opens every database once. Those that cannot be reached are tried again by their own fills, unless it is all of them. */
async function openDatabases(
  databases: Databases,
  served: ServedPipelines,
  settings: Settings,
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  const urls = new Set([...served.pipelines.values()].map(({ database }) => databaseUrl(settings, database)));
  if (urls.size === 0) {
    log.warn(
      'No pipeline can be served: put one into pipelines/ (`repave init` writes an example) and start again, as `repave dev` does by itself',
    );
    return;
  }
  const opened = await Promise.allSettled(
    [...urls].map((url) => firstConnection(() => databases.open(url), { waitMs: settings.connectWaitMs, signal, log })),
  );
  const failed = opened.filter((result) => result.status === 'rejected').map(({ reason }) => reason as Error);
  const serious = failed.find((error) => !isUnreachable(error));
  if (serious) throw serious;
  const [unreachable] = failed;
  if (unreachable && failed.length === urls.size) throw unreachable;
  for (const error of failed) {
    log.error({ error }, 'A database cannot be reached; its pipelines wait, the others go on');
  }
}

async function register(
  served: ServedPipelines,
  databases: Databases,
  pipeline: Pipeline,
): Promise<CarriedOver | undefined> {
  return databases.with(pipeline, async (database) => {
    const disorder = disorderOf(served, pipeline, await registeredPipelines(database));
    if (disorder) throw disorder;
    return registerPipeline(database, pipeline);
  });
}

async function connect({ connectionOptions, address }: TemporalServer): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect(connectionOptions);
  } catch {
    throw temporalUnreachable(address);
  }
}

async function createWorkers(
  settings: Settings,
  connection: NativeConnection,
  { namespace }: TemporalServer,
  deps: ActivityDeps,
): Promise<readonly Worker[]> {
  const common = {
    connection,
    namespace,
    // A cancel reaches a fill within about a second, whatever its heartbeat time-out.
    maxHeartbeatThrottleInterval: '1s',
    shutdownForceTime: settings.shutdownGraceMs + FORCE_AFTER_MS,
  } satisfies Partial<WorkerOptions>;
  return [
    await Worker.create({
      ...common,
      ...workflowCode(),
      taskQueue: settings.taskQueue,
      activities: createFillActivities(deps),
      maxConcurrentActivityTaskExecutions: settings.fills,
      // After a worker is killed, its workflows go to another one this much later.
      stickyQueueScheduleToStartTimeout: '5s',
      shutdownGraceTime: settings.shutdownGraceMs,
    }),
    await Worker.create({
      ...common,
      taskQueue: controlQueue(settings.taskQueue),
      activities: createControlActivities(deps),
      maxConcurrentActivityTaskExecutions: CONTROL_SLOTS,
      // Only what waits for another run heeds this; the rest is over in a moment.
      shutdownGraceTime: 0,
    }),
  ];
}

/** Runs workers until the signal, or until one of them fails: then the others are ended too. */
async function runAll(workers: readonly Worker[], signal: AbortSignal, ready: () => void): Promise<void> {
  const stop = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const runs = workers.map((worker) => worker.run());
  for (const run of runs) run.catch(stop);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  else ready();
  const ended = await Promise.allSettled(runs);
  signal.removeEventListener('abort', stop);
  for (const run of ended) if (run.status === 'rejected') throw run.reason;
}

/** Once a process: the SDK's own logs go to ours, and signals are for the caller to handle. */
function installRuntime(log: Log): void {
  try {
    Runtime.install({
      logger: temporalLogger(log),
      shutdownSignals: [],
      telemetryOptions: { logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} } },
    });
  } catch (error) {
    // Installed before, by this function or by a program that runs a worker of its own.
    if (!(error instanceof Error) || error.name !== 'IllegalStateError') throw error;
  }
}
