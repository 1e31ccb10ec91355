import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Failure } from '../failure.js';
import { identify, type ProcessIdentity, runs } from '../process-identity.js';

/**
 * Takes a folder for this process alone, until the returned function gives it back or the process has ended, however it
 * ended. Throws `InvalidInput`, with the other's pid, where another has it; `what` is what the other does.
 */
export function takeLock(file: string, what: string): () => void {
  mkdirSync(dirname(file), { recursive: true });
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, JSON.stringify(identify(process.pid)));
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        // A link is made whole or not at all, and never over another.
        linkSync(mine, file);
        return () => rmSync(file, { force: true });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        const other = holder(file);
        if (other && runs(other)) {
          throw new Failure(
            'InvalidInput',
            `${what} runs here already (pid ${other.pid}). Use that one, or stop it: kill ${other.pid}`,
          );
        }
        if (attempt === 5) throw error;
        rmSync(file, { force: true });
      }
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

function holder(file: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
