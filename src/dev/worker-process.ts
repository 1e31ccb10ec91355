import { join } from 'node:path';
import { endRecorded, record } from './leftover.js';
import { delay, type OwnedProcess, spawnOwned, type StopStep } from './owned-process.js';
import { ownProgram } from './own-program.js';
import type { Part } from './supervise.js';

export interface WorkerOptions {
  /** Folder in which its pid is kept. */
  readonly dir: string;
  /** Where its log goes; absent: where ours goes. */
  readonly logFile?: string;
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Called with the pid of each worker that is started. */
  readonly onStart: (pid: number) => void;
  /** Asked when one has ended by itself, with how: whether another takes its place, in `seconds`. */
  readonly restart: (how: string, seconds: number) => boolean;
}

const STOP: readonly StopStep[] = [
  ['SIGTERM', 20_000],
  ['SIGKILL', 10_000],
];

/** A worker as a process of its own, and its successors: the part ends when it is stopped, or one is not to be followed by another. */
export async function startWorker(options: WorkerOptions): Promise<Part> {
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

  let worker = await start();
  let stopped = false;
  const keep = async (): Promise<string> => {
    for (let quickEnds = 0; ;) {
      const startedAt = performance.now();
      const how = await worker.ended;
      if (stopped) return how;
      quickEnds = performance.now() - startedAt < 60_000 ? quickEnds + 1 : 0;
      // A worker that can't start at all should not fill the screen.
      const seconds = Math.min(30, 2 ** Math.max(0, quickEnds - 1));
      if (!options.restart(how, seconds)) return how;
      for (let waited = 0; waited < seconds * 1000 && !stopped; waited += 100) await delay(100);
      if (stopped) return how;
      worker = await start();
    }
  };
  const ended = keep();
  return {
    name: 'The worker',
    ended,
    logFile: options.logFile,
    async stop(hard) {
      stopped = true;
      await worker.stop(hard ? [['SIGKILL', 10_000]] : STOP);
      await ended;
    },
  };
}

/** Ends a worker that a killed process of ours left behind: before its servers, so that it can leave in peace. */
export async function clearWorkerLeftover(dir: string, say: (line: string) => void): Promise<void> {
  await endRecorded(pidFile(dir), 'worker', STOP, say);
}

function pidFile(dir: string): string {
  return join(dir, 'worker.pid.json');
}
