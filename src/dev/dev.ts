import { join, relative } from 'node:path';
import type { Settings } from '../settings.js';
import { connectTemporal } from '../temporal/connect.js';
import { temporalServer } from '../temporal/temporal-server.js';
import { openDatabase } from '../warehouse/database.js';
import { migrate } from '../warehouse/migrate.js';
import { removeDevServers, repaveFolder, writeDevServers } from './dev-file.js';
import { exampleFile, hasExample, hasSales, loadExample } from './example.js';
import { devDatabase, devTemporal, type UsedDatabase, type UsedTemporal } from './dev-servers.js';
import { cliHome, workerPolls } from './local-temporal.js';
import { takeLock } from './lock.js';
import { type PipelineSources, pipelineSources } from './pipeline-sources.js';
import { allSettledFirst } from './settled-first.js';
import { stateFolders } from './state-folder.js';
import { supervise, type Supervisor } from './supervise.js';
import { type SourceChange, watchSources } from './watch-sources.js';
import { clearWorkerLeftover, startWorker, type WorkerPart } from './worker-process.js';

/** Seconds that running fills get when the worker ends, unless `REPAVE_SHUTDOWN_GRACE` says another: nobody likes to wait for Ctrl-C. */
const GRACE_S = 5;
/** Changed files that are named. */
const SHOWN_CHANGES = 3;

/** What runs once `repave dev` is up. Holds no secret. */
export interface DevUp {
  /** User, host, port and name of the database, without the password. */
  readonly database: string;
  /** Whether it is the embedded one. */
  readonly embedded: boolean;
  readonly temporal: string;
  /** The UI's URL; absent for a server that was there already. */
  readonly ui?: string;
  /** The server's version as its CLI tells it; absent for a server that was there already. */
  readonly temporalVersion?: string;
  /** Where Temporal was looked for, and each outcome. */
  readonly tried: readonly string[];
  readonly taskQueue: string;
  readonly workerPid: number;
  /** Purchases that were loaded, where the example's table was not there yet. */
  readonly loaded?: number;
}

export interface DevOptions {
  readonly settings: Settings;
  /** Told what happens. */
  readonly say: (line: string) => void;
  /** Called once everything is up. */
  readonly onUp: (up: DevUp) => void;
}

/**
 * Runs PostgreSQL, Temporal and a worker for a project until a signal comes, and stops them again; resolves to that signal.
 * `DATABASE_URL` and `TEMPORAL_ADDRESS` replace the server of their kind: that database gets the ledger, and nothing else.
 * Throws `InvalidInput` where the set-up is wrong, `ServerUnreachable` where a server is not there or ended by itself.
 */
export async function runDev(options: DevOptions): Promise<NodeJS.Signals> {
  const { project } = options.settings;
  const unlock = takeLock(join(repaveFolder(project), 'dev.lock'), '`repave dev`');
  const ending = new AbortController();
  try {
    const outcome = await supervise(
      async (supervisor) => {
        const { up, worker, sources } = await bringUp(options, supervisor);
        options.onUp(up);
        await watchSources(pipelinesOf(project), sources, (changes) => renew(worker, changes, options), ending.signal);
        return await new Promise<never>(() => undefined);
      },
      () => {
        ending.abort();
        options.say('Stopping … (once more ends it at once)');
      },
    );
    return 'signal' in outcome ? outcome.signal : 'SIGTERM';
  } finally {
    ending.abort();
    removeDevServers(project);
    unlock();
  }
}

/** What runs, and the texts of the pipelines before the worker read them. */
interface BroughtUp {
  readonly up: DevUp;
  readonly worker: WorkerPart;
  readonly sources: PipelineSources;
}

async function bringUp(options: DevOptions, supervisor: Supervisor): Promise<BroughtUp> {
  const { settings, say } = options;
  const stateDir = repaveFolder(settings.project);
  const folders = stateFolders(stateDir, say);
  await clearWorkerLeftover(stateDir, say);
  const [database, temporal] = await allSettledFirst([
    devDatabase(settings.env, folders, supervisor, say),
    devTemporal(settings.env, folders, cliHome(stateDir), supervisor, say),
  ]);
  const ledger = await openDatabase(database.url, { fills: 1 });
  try {
    for (const name of await migrate(ledger)) say(`The ledger has got ${name}.`);
  } finally {
    await ledger.close();
  }
  const loaded = database.embedded ? await exampleIfMissing(database.url, settings.project) : undefined;
  writeDevServers(settings.project, {
    databaseUrl: database.url,
    temporalAddress: temporal.address,
    temporalUi: temporal.ui ?? '',
    temporalCli: temporal.cli ?? '',
  });
  let workerPid = 0;
  const sources = await pipelineSources(pipelinesOf(settings.project));
  const worker = await startWorker({
    dir: stateDir,
    graceMs: settings.env.REPAVE_SHUTDOWN_GRACE ? settings.shutdownGraceMs : GRACE_S * 1000,
    env: workerEnvironment(settings, database, temporal),
    onStart: (pid) => {
      if (workerPid !== 0) say(`Another worker runs, pid ${pid}.`);
      workerPid = pid;
    },
    restart: (how, seconds) => {
      say(`The worker ended (${how}); another starts in ${seconds} s.`);
      return true;
    },
  });
  supervisor.add(worker);
  const client = await connectTemporal(temporalServer({ env: temporal.environment }));
  try {
    const polls = await workerPolls(client, settings.taskQueue, 60_000);
    if (!polls) say(`The worker does not poll the task queue ${settings.taskQueue} yet: its log above says why.`);
  } finally {
    await client.connection.close();
  }
  const up: DevUp = {
    database: withoutPassword(database.url),
    embedded: database.embedded,
    temporal: temporal.address,
    ui: temporal.ui,
    temporalVersion: temporal.version,
    tried: temporal.tried,
    taskQueue: settings.taskQueue,
    workerPid,
    loaded,
  };
  return { up, worker, sources };
}

/** A worker reads its files once: another that reads them anew takes its place. Fills that outlast the grace begin again there. */
async function renew(worker: WorkerPart, changes: readonly SourceChange[], options: DevOptions): Promise<void> {
  const shown = changes
    .slice(0, SHOWN_CHANGES)
    .map(({ path, what }) => `${relative(options.settings.project, path)} ${what}`);
  const more = changes.length > SHOWN_CHANGES ? ` and ${changes.length - SHOWN_CHANGES} more` : '';
  options.say(`${shown.join(', ')}${more}: the worker starts again.`);
  await worker.renew();
}

function pipelinesOf(project: string): string {
  return join(project, 'pipelines');
}

/** A database that the user named is never given the example. */
async function exampleIfMissing(url: string, project: string): Promise<number | undefined> {
  if (!hasExample(project) || (await hasSales(url))) return undefined;
  return loadExample(url, exampleFile(project));
}

/** What we started is all the worker sees of its kind; what the user named, it sees as we do. */
function workerEnvironment(settings: Settings, database: UsedDatabase, temporal: UsedTemporal): Record<string, string> {
  const kept = Object.entries(settings.env).filter((entry): entry is [string, string] => {
    if (entry[1] === undefined) return false;
    if (database.embedded && entry[0].startsWith('PG')) return false;
    return !entry[0].startsWith('TEMPORAL_');
  });
  return {
    REPAVE_SHUTDOWN_GRACE: String(GRACE_S),
    ...Object.fromEntries(kept),
    DATABASE_URL: database.url,
    ...temporal.environment,
    REPAVE_PROJECT: settings.project,
    REPAVE_TASK_QUEUE: settings.taskQueue,
  };
}

/** User, host and name: nothing of a URL's password or parameters. */
function withoutPassword(url: string): string {
  const { username, host, pathname } = new URL(url);
  return `${username ? `${decodeURIComponent(username)}@` : ''}${host}${pathname}`;
}
