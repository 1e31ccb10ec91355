import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.js';
import { bareEnvironment } from './bare-environment.js';
import type { PostgresBinaries } from './postgres-binaries.js';
import type { ServerUser } from './server-user.js';

/** The role that owns an embedded cluster. Not `repave`: by `"$user"` in the search path its tables would land in the ledger's schema. */
export const SUPERUSER = 'owner';

const run = promisify(execFile);

/**
 * Makes `dir/data` and `dir/password` where there is no cluster yet: whole or not at all, since the data takes its name
 * only when complete, so that a kill half-way leaves nothing a later start would mistake for a cluster. Throws
 * `InvalidInput` where the cluster there is of another PostgreSQL version.
 */
export async function makeCluster(options: {
  readonly dir: string;
  readonly binaries: PostgresBinaries;
  readonly user: ServerUser | undefined;
  /** A stopped cluster's `dir`, copied with its password. */
  readonly template?: string;
  readonly sync: boolean;
}): Promise<void> {
  const { dir, binaries, user, template } = options;
  const data = join(dir, 'data');
  if (existsSync(data)) {
    refuseOtherVersion(data, binaries.version);
    return;
  }
  for (const name of readdirSync(dir)) {
    if (name.startsWith('data.')) rmSync(join(dir, name), { recursive: true, force: true });
  }
  const half = join(dir, `data.${process.pid}`);
  if (template) {
    // -a: the copy keeps the owner and modes that the server insists on.
    await run('cp', ['-a', join(template, 'data'), half]);
    await run('cp', ['-a', join(template, 'password'), join(dir, 'password')]);
  } else {
    const password = join(dir, 'password');
    writeFileSync(password, randomBytes(24).toString('hex') + '\n', { mode: 0o600 });
    if (user) chownSync(password, user.uid, user.gid);
    await run(
      binaries.initdb,
      [
        `--pgdata=${half}`,
        `--username=${SUPERUSER}`,
        `--pwfile=${password}`,
        '--auth=scram-sha-256',
        // The same order and case rules on every machine, whichever locales it has.
        '--encoding=UTF8',
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        ...(options.sync ? [] : ['--no-sync']),
      ],
      { ...(user && { uid: user.uid, gid: user.gid }), cwd: dir, env: bareEnvironment() },
    ).catch((error: unknown) => {
      rmSync(half, { recursive: true, force: true });
      throw new Failure('InvalidInput', `PostgreSQL could not make its cluster in ${dir}: ${reason(error)}`);
    });
  }
  renameSync(half, data);
}

function refuseOtherVersion(data: string, ours: string): void {
  const theirs = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  if (ours.split('.')[0] === theirs) return;
  throw new Failure(
    'InvalidInput',
    `The cluster in ${data} was made by PostgreSQL ${theirs}, and PostgreSQL ${ours} can't read it. ` +
      'Dump what you need with the older version, then move the folder away.',
  );
}

function reason(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string };
  return stderr?.trim() || message;
}
