import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identify, type ProcessIdentity } from '../process-identity.js';
import type { DevServers } from '../settings.js';

/** The folder below a project in which everything of `repave dev` is kept. Never part of the project's history. */
export function repaveFolder(project: string): string {
  const folder = join(project, '.repave');
  mkdirSync(folder, { recursive: true });
  // It holds passwords; a project's own .gitignore may not know of it.
  writeFileSync(join(folder, '.gitignore'), '*\n');
  return folder;
}

/** Leaves the servers' addresses, as this process's, for other processes of this user; whole at every instant. */
export function writeDevServers(project: string, servers: Omit<DevServers, keyof ProcessIdentity>): void {
  const file = join(repaveFolder(project), 'dev.json');
  writeFileSync(`${file}.new`, `${JSON.stringify({ ...identify(process.pid), ...servers }, undefined, 2)}\n`, {
    mode: 0o600,
  });
  renameSync(`${file}.new`, file);
}

/** Takes them away again, if they are still ours. */
export function removeDevServers(project: string): void {
  const file = join(project, '.repave', 'dev.json');
  try {
    if ((JSON.parse(readFileSync(file, 'utf8')) as DevServers).pid === process.pid) rmSync(file);
  } catch {
    // Gone already.
  }
}
