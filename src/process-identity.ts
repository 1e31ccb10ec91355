import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One process for certain: a pid alone may by now be somebody else's. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the system's own form: only ever compared. */
  readonly started: string;
}

/** The process that has this pid now; undefined where there is none, or only its exit status is left to be read. */
export function identify(pid: number): ProcessIdentity | undefined {
  const started = process.platform === 'linux' ? startedByProc(pid) : startedByPs(pid);
  return started === undefined ? undefined : { pid, started };
}

/** Whether that very process still runs. */
export function runs(identity: ProcessIdentity): boolean {
  const started = identify(identity.pid)?.started;
  return started !== undefined && started === identity.started;
}

function startedByProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name stands in brackets and may hold spaces and brackets itself, so fields are counted from the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19]}`;
  } catch {
    return undefined;
  }
}

function startedByPs(pid: number): string | undefined {
  try {
    const [state, ...started] = execFileSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .trim()
      .split(/\s+/);
    return !state || state.startsWith('Z') ? undefined : started.join(' ');
  } catch {
    return undefined;
  }
}
