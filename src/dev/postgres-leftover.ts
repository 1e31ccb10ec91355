import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../failure.js';
import { stopForeign } from './owned-process.js';
import { identify } from '../process-identity.js';

/** What a server writes into `postmaster.pid` of its data folder. */
export interface PidFile {
  readonly pid: number;
  /** `starting`, `ready`, `stopping`; absent while the file is being written. */
  readonly status?: string;
}

/** The pid file of a data folder; undefined where there is none. */
export function readPidFile(dataDir: string): PidFile | undefined {
  let lines: string[];
  try {
    lines = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return undefined;
  }
  const pid = Number(lines[0]);
  // The server pads the status with spaces to overwrite it in place.
  return Number.isInteger(pid) && pid > 0 ? { pid, status: lines[7]?.trim() || undefined } : undefined;
}

/**
 * Ends what a killed process of ours left over a data folder: a server that still runs there is stopped, and a pid file
 * whose number belongs to nobody or to somebody else by now is removed (PostgreSQL would refuse to start for it).
 * Throws `InvalidInput` where that server does not end.
 */
export async function clearLeftover(dataDir: string, say: (line: string) => void): Promise<void> {
  const file = readPidFile(dataDir);
  const identity = file && identify(file.pid);
  if (identity && servesFolder(identity.pid, dataDir)) {
    say(`A PostgreSQL that a killed run left behind (pid ${identity.pid}) is stopped.`);
    await stopForeign(identity, [
      ['SIGINT', 20_000],
      ['SIGQUIT', 10_000],
      ['SIGKILL', 10_000],
    ]);
    if (servesFolder(identity.pid, dataDir)) {
      throw new Failure(
        'InvalidInput',
        `PostgreSQL with pid ${identity.pid} still serves ${dataDir} and does not end: end it by hand.`,
      );
    }
  }
  rmSync(join(dataDir, 'postmaster.pid'), { force: true });
}

/** Whether a process is a PostgreSQL over this very folder: its working folder is its data folder. */
function servesFolder(pid: number, dataDir: string): boolean {
  if (!identify(pid)) return false;
  try {
    if (process.platform === 'linux') return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dataDir);
    const command = execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
    return command.includes('postgres') && command.includes(dataDir);
  } catch {
    return false;
  }
}
