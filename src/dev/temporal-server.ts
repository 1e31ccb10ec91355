import { existsSync, mkdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import type { Environment } from '../settings.js';
import { bareEnvironment } from './bare-environment.js';
import { freePort } from './free-port.js';
import { logTail } from './log-tail.js';
import { endRecorded, record } from './leftover.js';
import { delay, type OwnedProcess, spawnOwned, type StopStep } from './owned-process.js';
import { noTemporal, type TemporalCli, temporalClis } from './temporal-cli.js';

export interface TemporalOptions {
  /** Folder of the server's state, log and pid; made where it is missing. */
  readonly dir: string;
  /** Folder in which a downloaded CLI is kept. */
  readonly home: string;
  /** Where `TEMPORAL_CLI_PATH` and `PATH` are read; nothing else of it matters to the server. */
  readonly env: Environment;
  /** The ports wished for; where one is taken, or none is wished for, a free one. */
  readonly port?: number;
  readonly uiPort?: number;
  /** Whether its state outlives it, in `dir/temporal.db`. */
  readonly persistent: boolean;
  /** Whether it serves its UI. */
  readonly ui: boolean;
  /** `name=JSON value` of the server's dynamic configuration. */
  readonly dynamicConfig?: readonly string[];
  readonly say?: (line: string) => void;
}

/** A running Temporal server of our own. */
export interface TemporalServer {
  readonly address: string;
  /** URL of its UI, where it has one. */
  readonly ui?: string;
  readonly cli: TemporalCli;
  readonly pid: number;
  readonly logFile: string;
  /** Where its program was looked for, and each outcome. */
  readonly tried: readonly string[];
  stop(): Promise<void>;
  kill(): Promise<void>;
  readonly ended: Promise<string>;
}

const STOP: readonly StopStep[] = [
  ['SIGTERM', 15_000],
  ['SIGKILL', 10_000],
];

/**
 * Starts a Temporal dev server on 127.0.0.1 with the namespace `default`, by the first CLI of this machine that brings
 * one up, and returns once it answers. A server that a killed run left in `dir` is stopped first. Throws `InvalidInput`
 * with everything tried where none comes up.
 */
export async function startTemporal(options: TemporalOptions): Promise<TemporalServer> {
  mkdirSync(options.dir, { recursive: true });
  await clearTemporalLeftover(options.dir, options.say ?? (() => undefined));
  const tried: string[] = [];
  for await (const cli of temporalClis(options, tried)) {
    try {
      return await startWith(cli, options, tried);
    } catch (error) {
      tried.push(`  it did not come up: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw noTemporal(tried);
}

async function startWith(
  cli: TemporalCli,
  options: TemporalOptions,
  tried: readonly string[],
): Promise<TemporalServer> {
  const logFile = join(options.dir, 'temporal.log');
  for (let attempt = 1; ; attempt++) {
    if (existsSync(logFile)) truncateSync(logFile);
    const port = await freePort(options.port);
    const uiPort = options.ui ? await freePort(options.uiPort) : undefined;
    const server = await spawnOwned(cli.path, flags(options, port, uiPort), {
      env: bareEnvironment(),
      cwd: options.dir,
      logFile,
      lastSignal: 'SIGKILL',
    });
    record(identityFile(options.dir), server);
    const address = `127.0.0.1:${port}`;
    const outcome = await ready(server, address);
    if (outcome === 'ready') {
      return {
        address,
        ui: uiPort === undefined ? undefined : `http://127.0.0.1:${uiPort}`,
        cli,
        pid: server.pid,
        logFile,
        tried,
        ended: server.ended,
        stop: () => server.stop(STOP),
        kill: () => server.stop([['SIGKILL', 30_000]]),
      };
    }
    await server.stop(STOP);
    const log = logTail(logFile);
    // A port that was free may be taken by now: ours to try again, not the CLI's fault.
    if (!/address already in use/i.test(log) || attempt === 5) {
      throw new Error(`${outcome}; its log, ${logFile}, ends with\n${log}`);
    }
  }
}

function flags(options: TemporalOptions, port: number, uiPort: number | undefined): string[] {
  const pragmas = ['journal_mode=wal', 'synchronous=normal'];
  return [
    ...[
      'server',
      'start-dev',
      '--disable-config-env',
      '--disable-config-file',
      '--log-level',
      'warn',
      '--color',
      'never',
    ],
    ...['--ip', '127.0.0.1', '--port', String(port)],
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort), '--ui-disable-news-fetch']),
    // Twice the speed of the default, which flushes every step to disk; a crash of the machine may lose the last moments.
    ...(options.persistent
      ? ['--db-filename', join(options.dir, 'temporal.db'), ...pragmas.flatMap((p) => ['--sqlite-pragma', p])]
      : []),
    ...(options.dynamicConfig ?? []).flatMap((value) => ['--dynamic-config-value', value]),
  ];
}

async function ready(server: OwnedProcess, address: string): Promise<string> {
  let last = 'it did not answer';
  for (const until = Date.now() + 120_000; Date.now() < until; await delay(50)) {
    if (!server.running) return await server.ended;
    try {
      const connection = await Connection.connect({ address, connectTimeout: '5s' });
      try {
        await connection.workflowService.describeNamespace({ namespace: 'default' });
        return 'ready';
      } finally {
        await connection.close();
      }
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
  }
  return `not ready after 2 minutes: ${last}`;
}

function identityFile(dir: string): string {
  return join(dir, 'temporal.pid.json');
}

/** Ends a Temporal server that a killed process of ours left behind over `dir`. */
export async function clearTemporalLeftover(dir: string, say: (line: string) => void): Promise<void> {
  await endRecorded(identityFile(dir), 'Temporal server', STOP, say);
}
