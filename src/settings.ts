import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_TASK_QUEUE } from './contract.js';
import { Failure } from './failure.js';
import { type ProcessIdentity, runs } from './process-identity.js';

/** What `repave dev` leaves in `.repave/dev.json`, so that a second terminal finds its servers: those of the process named, while it runs. */
export interface DevServers extends ProcessIdentity {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly temporalUi: string;
  readonly temporalCli: string;
}

/** Every setting of worker and command that is not one of Temporal's own (those are read by `@temporalio/envconfig`). */
export interface Settings {
  /** Absolute path of the folder that holds `pipelines/` and `.repave/`. */
  readonly project: string;
  readonly taskQueue: string;
  /** Fills at once in one worker, and connections a pool: 1 to 100. */
  readonly fills: number;
  /** Where a TypeScript pipeline's rows are spooled; default the system's temporary folder. */
  readonly spoolDir?: string;
  /** Milliseconds that a stopping worker waits for its fills. */
  readonly shutdownGraceMs: number;
  /** Milliseconds that a starting worker waits for its servers. */
  readonly connectWaitMs: number;
  /** Whom a worker tells what people act on. All three are secrets: never print them. */
  readonly notify: NotifySettings;
  /** Present while a `repave dev` runs in this project and the environment names no servers of its own. */
  readonly dev?: DevServers;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The notify hooks as the environment has them; a worker judges them when it starts. */
export interface NotifySettings {
  readonly url?: string;
  /** Run by a shell. */
  readonly command?: string;
  /** Signs what they are told. */
  readonly secret?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the settings: environment, then a running `repave dev`, then the default. Flags are laid over it by the command.
 * Throws `InvalidInput` naming the variable, what it holds and what was expected.
 */
export function loadSettings(
  env: Environment = process.env,
  project: string = env.REPAVE_PROJECT ?? process.cwd(),
): Settings {
  const dev = readDevServers(project);
  return Object.freeze({
    project,
    taskQueue: env.REPAVE_TASK_QUEUE || DEFAULT_TASK_QUEUE,
    fills: integer(env, 'REPAVE_FILLS', 8, 1, 100),
    spoolDir: env.REPAVE_SPOOL_DIR || undefined,
    shutdownGraceMs: integer(env, 'REPAVE_SHUTDOWN_GRACE', 30, 0, 86_400) * 1000,
    connectWaitMs: integer(env, 'REPAVE_CONNECT_WAIT', 30, 0, 3_600) * 1000,
    notify: {
      url: env.REPAVE_NOTIFY_URL || undefined,
      command: env.REPAVE_NOTIFY_COMMAND || undefined,
      secret: env.REPAVE_NOTIFY_SECRET || undefined,
    },
    dev,
    env,
  });
}

/**
 * The URL of a pipeline's database: the variable it names, else a running `repave dev`'s for `DATABASE_URL`.
 * Throws `InvalidInput` where neither is there. The value is a secret: never print it.
 */
export function databaseUrl(settings: Settings, variable = 'DATABASE_URL'): string {
  const url = urlOf(settings, variable);
  if (!url) {
    throw new Failure(
      'InvalidInput',
      `The environment variable ${variable} is not set, and no \`repave dev\` runs in ${settings.project}. ` +
        `Set ${variable} to the database's URL (postgres://user@host/name), or start \`repave dev\`.`,
    );
  }
  return url;
}

/** Whether {@link databaseUrl} would find one. */
export function hasDatabaseUrl(settings: Settings, variable: string): boolean {
  return Boolean(urlOf(settings, variable));
}

function urlOf(settings: Settings, variable: string): string | undefined {
  return settings.env[variable] || (variable === 'DATABASE_URL' ? settings.dev?.databaseUrl : undefined);
}

/** The servers of a `repave dev` that runs in this project; undefined where there is none or its process has ended. */
export function readDevServers(project: string): DevServers | undefined {
  try {
    const found = JSON.parse(readFileSync(join(project, '.repave', 'dev.json'), 'utf8')) as DevServers;
    return runs(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

function integer(env: Environment, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new Failure(
      'InvalidInput',
      `${name} is ${JSON.stringify(text)}: expected a whole number from ${min} to ${max}.`,
    );
  }
  return value;
}
