import { execFileSync, spawnSync } from 'node:child_process';
import { Failure } from '../failure.js';

/** A user of the operating system. */
export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/**
 * Whom PostgreSQL runs as, since it refuses root: `postgres`, else `nobody`. Undefined where we are not root, and it runs
 * as ourselves. Throws `InvalidInput` where root has neither.
 */
export function serverUser(): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      // Wherever the caller's PATH leads, `id` is one of the system's own.
      const id = (flag: string): number =>
        Number(
          execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: '/usr/bin:/bin' } }),
        );
      return { name, uid: id('-u'), gid: id('-g') };
    } catch {
      // No such user: the next one.
    }
  }
  throw new Failure(
    'InvalidInput',
    'PostgreSQL refuses to run as root, and this machine has neither a user `postgres` nor `nobody`. Make one, or run this as another user.',
  );
}

/** Whether the user can run this program. */
export function canRun(user: ServerUser | undefined, program: string): boolean {
  return spawnSync(program, ['--version'], { ...ids(user), cwd: '/', stdio: 'ignore', env: {} }).status === 0;
}

/** Whether the user can go into this folder. */
export function canEnter(user: ServerUser | undefined, folder: string): boolean {
  return (
    spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { ...ids(user), cwd: '/', stdio: 'ignore' }).status === 0
  );
}

function ids(user: ServerUser | undefined): { uid?: number; gid?: number } {
  return user ? { uid: user.uid, gid: user.gid } : {};
}
