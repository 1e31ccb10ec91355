import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shared } from './servers.js';
import { testTemporal } from './temporal.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY_WITHIN_MS = 120_000;

export interface WorkerOptions {
  /** What `DATABASE_URL` is to say. */
  readonly databaseUrl: string;
  readonly taskQueue: string;
  /** The folder that holds `pipelines/`: see {@link createProject}. */
  readonly project: string;
  /** Default: the run's shared Temporal server. */
  readonly temporalAddress?: string;
  /** More variables, or others' values. */
  readonly env?: Readonly<Record<string, string>>;
  /** False: returns at once, for a worker that is not to come up. */
  readonly waitUntilReady?: boolean;
}

/** A real worker in a process of its own, to be killed, frozen and thawed. */
export interface WorkerProcess {
  readonly pid: number;
  /** Resolves when the process has ended, with its exit code or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
  /** All it has written to stderr so far. */
  log(): string;
  signal(name: NodeJS.Signals): void;
  /** SIGKILL, and waits until it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and waits until it has ended by itself. Returns its exit code. */
  stop(): Promise<number | NodeJS.Signals>;
}

/** Makes a project folder with pipeline files, named by their path under `pipelines/`. */
export async function createProject(files: Readonly<Record<string, string>>): Promise<string> {
  const project = mkdtempSync(join((await shared('folder')).dir, 'project-'));
  mkdirSync(join(project, 'pipelines'));
  for (const [name, text] of Object.entries(files)) {
    const path = join(project, 'pipelines', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return project;
}

/**
 * Starts a worker from the build where that is newer than the sources, else from source. Its environment holds nothing of
 * this process's but PATH, TZ and the settings given.
 */
export async function startWorker(options: WorkerOptions): Promise<WorkerProcess> {
  const temporal = options.temporalAddress ?? (await testTemporal()).address;
  const child = spawn(process.execPath, entryPoint(), {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env.PATH,
      ...(process.env.TZ === undefined ? {} : { TZ: process.env.TZ }),
      REPAVE_PROJECT: options.project,
      REPAVE_TASK_QUEUE: options.taskQueue,
      DATABASE_URL: options.databaseUrl,
      TEMPORAL_ADDRESS: temporal,
      // Temporal's own settings must not come from the file of whoever runs the tests.
      TEMPORAL_CONFIG_FILE: join(options.project, 'no-temporal.toml'),
      REPAVE_LOG_LEVEL: 'debug',
      ...options.env,
    },
  });
  const worker = watched(child);
  if (options.waitUntilReady ?? true) await ready(worker);
  return worker;
}

const running = new Set<ChildProcess>();
// A test process that ends early must leave no worker behind.
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

function watched(child: ChildProcess): WorkerProcess {
  const { pid } = child;
  if (pid === undefined) throw new Error('The worker could not be started');
  running.add(child);
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text));
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve(code ?? signal ?? 0);
    });
  });
  const signal = (name: NodeJS.Signals): void => void child.kill(name);
  return {
    pid,
    exited,
    log: () => log,
    signal,
    kill: async () => {
      signal('SIGKILL');
      await exited;
    },
    stop: () => {
      signal('SIGTERM');
      return exited;
    },
  };
}

/** Waits for the one line that says that the worker polls. */
async function ready(worker: WorkerProcess): Promise<void> {
  const until = Date.now() + READY_WITHIN_MS;
  let ended: number | NodeJS.Signals | undefined;
  void worker.exited.then((how) => (ended = how));
  while (!worker.log().includes('"msg":"Worker is ready"')) {
    if (ended !== undefined) throw new Error(`The worker ended with ${ended} before it was ready:\n${worker.log()}`);
    if (Date.now() > until) {
      await worker.kill();
      throw new Error(`The worker was not ready within ${READY_WITHIN_MS / 1000} s:\n${worker.log()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function entryPoint(): string[] {
  const built = join(ROOT, 'dist/workflow-bundle.js');
  const isCurrent = newest(join(ROOT, 'src')) < (statSync(built, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return isCurrent ? [join(ROOT, 'dist/worker.js')] : ['--import', 'tsx', join(ROOT, 'src/worker.ts')];
}

/** When the newest file below a folder was changed. */
function newest(folder: string): number {
  const times = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs);
  return Math.max(0, ...times);
}
