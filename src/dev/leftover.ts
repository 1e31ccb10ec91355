import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type OwnedProcess, stopForeign, type StopStep } from './owned-process.js';
import { type ProcessIdentity, runs } from '../process-identity.js';

/** Writes down which process this is, so that a later start can end it should we be killed before we can. */
export function record(file: string, process: OwnedProcess): void {
  writeFileSync(file, JSON.stringify(process.identity ?? null), { mode: 0o600 });
}

/**
 * Ends the process that was written down, if that very one still runs: never one that has merely been given its number.
 * `name` is for the line that says so.
 */
export async function endRecorded(
  file: string,
  name: string,
  steps: readonly StopStep[],
  say: (line: string) => void,
): Promise<void> {
  const left = recorded(file);
  if (left && runs(left)) {
    say(`A ${name} that a killed run left behind (pid ${left.pid}) is stopped.`);
    await stopForeign(left, steps);
  }
  rmSync(file, { force: true });
}

function recorded(file: string): ProcessIdentity | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity | null;
  } catch {
    return null;
  }
}
