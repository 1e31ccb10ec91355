import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { identify, type ProcessIdentity, runs } from '../process-identity.js';

/** A child process of ours that ends no later than this process does, unless this one is killed outright. */
export interface OwnedProcess {
  readonly pid: number;
  readonly identity: ProcessIdentity | undefined;
  /** Resolves when it has ended, to `code 1` or `signal SIGKILL`. Never rejects. */
  readonly ended: Promise<string>;
  readonly running: boolean;
  signal(signal: NodeJS.Signals): void;
  /** Sends each signal in turn, as many milliseconds apart as it says, until the process has ended. */
  stop(steps: readonly StopStep[]): Promise<void>;
}

export type StopStep = readonly [signal: NodeJS.Signals, waitMs: number];

const owned = new Map<ChildProcess, NodeJS.Signals>();
let listening = false;

/**
 * Starts a program in a process group of its own, so that Ctrl-C on the terminal reaches only us and we stop things in
 * the right order. Its output is appended to `logFile`, or goes where ours goes. Rejects where it cannot be started at all.
 */
export async function spawnOwned(
  command: string,
  args: readonly string[],
  options: {
    readonly env: NodeJS.ProcessEnv;
    readonly logFile: string | undefined;
    readonly cwd?: string;
    readonly user?: { readonly uid: number; readonly gid: number };
    /** Sent should this process exit first. */
    readonly lastSignal: NodeJS.Signals;
  },
): Promise<OwnedProcess> {
  const log = options.logFile === undefined ? 'inherit' : openSync(options.logFile, 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env,
      uid: options.user?.uid,
      gid: options.user?.gid,
      detached: true,
      stdio: ['ignore', log, log],
    });
  } finally {
    if (log !== 'inherit') closeSync(log);
  }
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `code ${code}`));
  }).finally(() => owned.delete(child));
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  if (!listening) process.once('exit', endAll);
  listening = true;
  owned.set(child, options.lastSignal);
  return {
    pid: child.pid ?? 0,
    identity: identify(child.pid ?? 0),
    ended,
    get running() {
      return child.exitCode === null && child.signalCode === null;
    },
    signal: (signal) => void child.kill(signal),
    async stop(steps) {
      for (const [signal, waitMs] of steps) {
        if (child.exitCode !== null || child.signalCode !== null) break;
        child.kill(signal);
        await within(ended, waitMs);
      }
    },
  };
}

/** Ends a process that is not our child, as {@link OwnedProcess.stop} does; returns once it is gone. */
export async function stopForeign(identity: ProcessIdentity, steps: readonly StopStep[]): Promise<void> {
  for (const [signal, waitMs] of steps) {
    if (!runs(identity)) return;
    try {
      process.kill(identity.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      return;
    }
    for (const until = Date.now() + waitMs; Date.now() < until && runs(identity);) await delay(25);
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function endAll(): void {
  for (const [child, signal] of owned) child.kill(signal);
}

async function within(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([promise, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}
