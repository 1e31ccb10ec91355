import { join } from 'node:path';
import { endRecorded, record } from './leftover.js';
import { type OwnedProcess, spawnOwned, type StopStep } from './owned-process.js';
import { ownProgram } from './own-program.js';
import type { Part } from './supervise.js';

export interface WorkerOptions {
  /** Folder in which its pid is kept. */
  readonly dir: string;
  /** Where its log goes; absent: where ours goes. */
  readonly logFile?: string;
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Milliseconds it gives running fills when it is asked to stop: `REPAVE_SHUTDOWN_GRACE` of its environment. */
  readonly graceMs: number;
  /** Called with the pid of each worker that is started. */
  readonly onStart: (pid: number) => void;
  /** Asked when one has ended by itself, with how: whether another takes its place, in `seconds`. */
  readonly restart: (how: string, seconds: number) => boolean;
}

/** A worker and its successors. */
export interface WorkerPart extends Part {
  /** Ends the worker as a stop does, its running fills with their grace, and has another take its place at once. */
  renew(): Promise<void>;
}

/** Milliseconds that a worker takes, beyond its grace, to roll back and to end. */
const BEYOND_GRACE_MS = 15_000;

const stopSteps = (graceMs: number): readonly StopStep[] => [
  ['SIGTERM', graceMs + BEYOND_GRACE_MS],
  ['SIGKILL', 10_000],
];

/** A worker as a process of its own, and its successors: the part ends when it is stopped, or one is not to be followed by another. */
export async function startWorker(options: WorkerOptions): Promise<WorkerPart> {
  const start = async (): Promise<OwnedProcess> => {
    const started = await spawnOwned(process.execPath, ownProgram('worker'), {
      env: options.env,
      logFile: options.logFile,
      lastSignal: 'SIGKILL',
    });
    record(pidFile(options.dir), started);
    options.onStart(started.pid);
    return started;
  };
  const steps = stopSteps(options.graceMs);

  let starting = start();
  await starting;
  let stopped = false;
  /** Whether the one that runs has been asked to make room for another. */
  let renewed = false;
  let goOn: (() => void) | undefined;
  const keep = async (): Promise<string> => {
    for (let quickEnds = 0; ;) {
      const startedAt = performance.now();
      const how = await (await starting).ended;
      if (stopped) return how;
      if (renewed) {
        quickEnds = 0;
      } else {
        quickEnds = performance.now() - startedAt < 60_000 ? quickEnds + 1 : 0;
        // A worker that can't start at all should not fill the screen.
        const seconds = Math.min(30, 2 ** Math.max(0, quickEnds - 1));
        if (!options.restart(how, seconds)) return how;
        await pause(seconds * 1000, (wake) => (goOn = wake));
        if (stopped) return how;
      }
      renewed = false;
      starting = start();
    }
  };
  const ended = keep();
  return {
    name: 'The worker',
    ended,
    logFile: options.logFile,
    async renew() {
      renewed = true;
      goOn?.();
      await (await starting).stop(steps);
    },
    async stop(hard) {
      stopped = true;
      goOn?.();
      await (await starting).stop(hard ? [['SIGKILL', 10_000]] : steps);
      await ended;
    },
  };
}

/** Ends a worker that a killed process of ours left behind: before its servers, so that it can leave in peace. */
export async function clearWorkerLeftover(dir: string, say: (line: string) => void): Promise<void> {
  await endRecorded(pidFile(dir), 'worker', stopSteps(5_000), say);
}

/** Waits so long, or until woken. */
async function pause(milliseconds: number, onWait: (wake: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
    onWait(resolve);
  });
  clearTimeout(timer);
}

function pidFile(dir: string): string {
  return join(dir, 'worker.pid.json');
}
