import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clearLeftover } from '../../src/dev/postgres-leftover.js';
import { identify, type ProcessIdentity, runs } from '../../src/process-identity.js';
import { canEnter, serverUser } from '../../src/dev/server-user.js';
import { clearTemporalLeftover } from '../../src/dev/temporal-server.js';

const PREFIX = 'repave-test-';

/** A folder for one test run's servers, which PostgreSQL's user can enter. What a killed run left is ended and removed first. */
export async function makeRunFolder(): Promise<string> {
  const user = serverUser();
  const parent = [tmpdir(), '/tmp', '/var/tmp'].find((folder) => canEnter(user, folder)) ?? tmpdir();
  for (const name of readdirSync(parent)) if (name.startsWith(PREFIX)) await sweep(join(parent, name));
  const folder = mkdtempSync(join(parent, PREFIX));
  chmodSync(folder, 0o711);
  writeFileSync(join(folder, 'owner.json'), JSON.stringify(identify(process.pid)));
  return folder;
}

/** Removes a run's folder, after ending what a test or a killed process left running in it. */
export async function removeRunFolder(folder: string): Promise<void> {
  for (const { name } of readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    await clearLeftover(join(folder, name, 'data'), () => undefined);
    await clearTemporalLeftover(join(folder, name), () => undefined);
  }
  rmSync(folder, { recursive: true, force: true });
}

async function sweep(folder: string): Promise<void> {
  try {
    if (runs(JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')) as ProcessIdentity)) return;
  } catch {
    // Another run is just making it, or has removed it.
    return;
  }
  await removeRunFolder(folder);
}
