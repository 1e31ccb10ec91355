import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../failure.js';
import { bareEnvironment } from './bare-environment.js';
import { freePort } from './free-port.js';
import { logTail } from './log-tail.js';
import { delay, type OwnedProcess, spawnOwned, type StopStep } from './owned-process.js';
import { makeCluster, SUPERUSER } from './postgres-cluster.js';
import { postgresBinaries } from './postgres-binaries.js';
import { clearLeftover, readPidFile } from './postgres-leftover.js';
import { serverUser } from './server-user.js';

export interface PostgresOptions {
  /** Folder of the cluster, its password and its log; made where it is missing. The server's user must be able to enter it. */
  readonly dir: string;
  /** The port wished for; where it is taken, or none is wished for, a free one. */
  readonly port?: number;
  /** Settings of `postgresql.conf`, over the defaults (UTC, loopback only, no Unix socket). */
  readonly settings?: Readonly<Record<string, string>>;
  /** A stopped cluster's `dir` to copy instead of making one, which is quicker; it keeps that cluster's password. */
  readonly template?: string;
  /** Where a copy of the programs is kept if the server's user can't reach npm's; default the system's temporary folder. */
  readonly binariesDir?: string;
  /** False: the new cluster is not flushed to disk. Only for what a crash of the machine may take away. */
  readonly sync?: boolean;
  /** Told what a person should know. */
  readonly say?: (line: string) => void;
}

/** A running PostgreSQL of our own. */
export interface PostgresServer {
  readonly dir: string;
  readonly port: number;
  readonly pid: number;
  readonly logFile: string;
  /** The superuser's URL for a database. Holds the password: never print it. */
  url(database?: string): string;
  /** Ends it: `fast` ends its sessions first, `immediate` is a crash that the next start recovers from. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** SIGKILL to the server itself; resolves once that process is gone (its backends follow by themselves). */
  kill(): Promise<void>;
  /** Resolves when the server has ended, for whatever reason, to how it ended. */
  readonly ended: Promise<string>;
}

const STOP: Readonly<Record<'fast' | 'immediate', readonly StopStep[]>> = {
  fast: [
    ['SIGINT', 30_000],
    ['SIGQUIT', 10_000],
    ['SIGKILL', 10_000],
  ],
  immediate: [
    ['SIGQUIT', 10_000],
    ['SIGKILL', 10_000],
  ],
};

/**
 * Starts PostgreSQL on 127.0.0.1 over the cluster in `dir`, making the cluster first where there is none, and returns
 * once it accepts connections. Whatever a killed predecessor left there (a server that still runs, a stale pid file, a
 * half-made cluster) is cleared first. Throws `InvalidInput` where it can't run here, with the log's last lines.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const say = options.say ?? (() => undefined);
  const user = serverUser();
  const binaries = postgresBinaries(user, options.binariesDir ?? join(tmpdir(), 'repave-postgres'), say);
  const { dir } = options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  chmodSync(dir, 0o700);
  if (user) chownSync(dir, user.uid, user.gid);
  const dataDir = join(dir, 'data');
  await clearLeftover(dataDir, say);
  await makeCluster({ dir, binaries, user, template: options.template, sync: options.sync ?? true });

  const password = readFileSync(join(dir, 'password'), 'utf8').trim();
  const logFile = join(dir, 'postgres.log');
  if (existsSync(logFile)) truncateSync(logFile);
  let port = await freePort(options.port);
  for (let attempt = 1; ; attempt++) {
    const server = await spawnOwned(binaries.postgres, ['-D', dataDir, ...settingFlags(options, port)], {
      env: bareEnvironment(),
      cwd: dir,
      logFile,
      user,
      lastSignal: 'SIGQUIT',
    });
    const outcome = await ready(server, dataDir);
    if (outcome === 'ready') return running(dir, port, password, logFile, server);
    await server.stop(STOP.fast);
    const log = logTail(logFile);
    // A killed server's backends need a moment to notice, and a port that was free may be taken by now.
    const passing =
      /could not bind|could not create any TCP|pre-existing shared memory block|lock file "postmaster.pid" already exists/.test(
        log,
      );
    if (!passing || attempt === 20) {
      throw new Failure(
        'InvalidInput',
        `PostgreSQL ${binaries.version} did not start (${outcome}). Its log, ${logFile}, ends with:\n${log}`,
      );
    }
    truncateSync(logFile);
    await delay(250);
    port = await freePort(port);
  }
}

function running(dir: string, port: number, password: string, logFile: string, server: OwnedProcess): PostgresServer {
  return {
    dir,
    port,
    pid: server.pid,
    logFile,
    ended: server.ended,
    url: (database = 'postgres') =>
      `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    stop: (mode = 'fast') => server.stop(STOP[mode]),
    kill: () => server.stop([['SIGKILL', 30_000]]),
  };
}

function settingFlags(options: PostgresOptions, port: number): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...options.settings,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** The server writes `ready` into its pid file once it accepts connections: no password is needed to ask. */
async function ready(server: OwnedProcess, dataDir: string): Promise<string> {
  // Recovery after a crash may take minutes; a server that is neither ready nor ended by then hangs.
  for (const until = Date.now() + 300_000; Date.now() < until; await delay(25)) {
    if (!server.running) return await server.ended;
    const file = readPidFile(dataDir);
    if (file?.pid === server.pid && file.status === 'ready') return 'ready';
  }
  return 'not ready after 5 minutes';
}
