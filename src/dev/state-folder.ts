import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { canEnter, serverUser } from './server-user.js';

/** Where state goes that the servers' user cannot keep in the checkout. Only root writes there, so nobody can lie in wait. */
const ELSEWHERE = '/var/lib/repave';

/** Folders of what runs on this machine for one project. */
export interface StateFolders {
  /** The PostgreSQL cluster's. */
  readonly postgres: string;
  /** For a copy of PostgreSQL's programs, should its user not reach npm's. */
  readonly binaries: string;
  readonly temporal: string;
}

/**
 * Makes the folders below `stateDir`. Where we are root and PostgreSQL's user can't go there (a checkout in a closed home),
 * its own are elsewhere, one set for each `stateDir`, and this is said.
 */
export function stateFolders(
  stateDir: string,
  say: (line: string) => void,
  elsewhere: string = ELSEWHERE,
): StateFolders {
  const user = serverUser();
  mkdirSync(stateDir, { recursive: true });
  const temporal = join(stateDir, 'temporal');
  if (!user) return { postgres: join(stateDir, 'postgres'), binaries: join(stateDir, 'postgres-programs'), temporal };
  // A umask of 077 would shut out PostgreSQL's user; passing through is all it gets.
  for (const folder of [resolve(stateDir, '..'), stateDir]) {
    if (basename(folder) === '.repave' || folder === stateDir) chmodSync(folder, statSync(folder).mode | 0o111);
  }
  if (canEnter(user, stateDir)) return { postgres: join(stateDir, 'postgres'), binaries: elsewhere, temporal };
  const name = `${basename(resolve(stateDir, '..'))}-${createHash('sha256').update(resolve(stateDir)).digest('hex').slice(0, 12)}`;
  const postgres = join(elsewhere, name);
  mkdirSync(elsewhere, { recursive: true, mode: 0o755 });
  say(`PostgreSQL runs as the user ${user.name}, who can't reach ${stateDir}: its cluster is kept in ${postgres}.`);
  return { postgres, binaries: elsewhere, temporal };
}
