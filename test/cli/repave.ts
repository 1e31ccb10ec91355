import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
/** By its path: the child runs in folders of its own. */
const TSX = import.meta.resolve('tsx');
/** `npm test` has just built what users run; a test run by hand takes the sources as they are. */
const COMMAND =
  process.env.npm_lifecycle_event === 'test'
    ? [fileURLToPath(new URL('../../bin/repave.js', import.meta.url))]
    : ['--import', TSX, CLI];

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves with what was written so far once that holds a match; rejects where the command ends without. */
  says(pattern: RegExp): Promise<string>;
}

/** Starts the command as users do, in a process of its own, with nothing of this machine's servers in its environment. */
export function startRepave(
  project: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Running {
  return start(process.execPath, [...COMMAND, ...words], project, env);
}

function start(
  program: string,
  words: readonly string[],
  project: string,
  env: Readonly<Record<string, string>>,
): Running {
  const child = spawn(program, words, {
    cwd: project,
    env: {
      PATH: process.env.PATH,
      HOME: project,
      TZ: process.env.TZ,
      TEMPORAL_CONFIG_FILE: join(project, 'none.toml'),
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  const says = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (pattern.test(stderr + stdout)) resolve(stderr + stdout);
      };
      child.stderr.on('data', look);
      child.stdout.on('data', look);
      child.on('close', () => (look(), reject(new Error(`It ended without saying ${pattern}:\n${stderr}\n${stdout}`))));
      look();
    });
  return { process: child, ended, says };
}

/** Gives the rest of its arguments a terminal of 80 columns, joins it to its own input and output, and ends as they do. */
const TERMINAL = `
import os, pty, sys
sized = ['sh', '-c', 'stty cols 80 rows 30; exec "$@"', 'sh', *sys.argv[1:]]
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sized)))
`;

/** Starts the command on a terminal; all that it shows comes on standard output. Write `\x03` to it for Ctrl-C. */
export function startOnTerminal(
  project: string,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Running {
  return start('python3', ['-c', TERMINAL, process.execPath, ...COMMAND, ...words], project, {
    TERM: 'xterm',
    ...env,
  });
}

/** Runs the command to its end. */
export async function repave(
  project: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return startRepave(project, words, env).ended;
}

/** Runs the command to its end as a line of bash, in which `"$@"` is the command. */
export async function inShell(project: string, line: string, words: readonly string[]): Promise<Ended> {
  return start('bash', ['-c', line, 'bash', process.execPath, ...COMMAND, ...words], project, {}).ended;
}

/** The one JSON document on standard output, which must hold nothing else. */
export function document<T = Record<string, unknown>>({ stdout }: Ended): T {
  const lines = stdout.trimEnd().split('\n');
  if (lines.length !== 1) throw new Error(`expected one line of JSON, found:\n${stdout}`);
  return JSON.parse(lines[0] ?? '') as T;
}

/** A project's folder with these files. */
export function makeProject(files: Readonly<Record<string, string>> = {}): string {
  const project = mkdtempSync(join(tmpdir(), 'repave-cli-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
  return project;
}

export const SALES_SUMMARY = `-- repave
-- target: sales_summary
-- partition: { column: sale_date, by: day }
-- start: 1997-01-01
-- checks: [{ rows: { min: 1 } }, { unique: [sale_date] }]
SELECT sold_on AS sale_date, count(*) AS orders, sum(amount) AS revenue
FROM   sales
WHERE  sold_on >= :date AND sold_on < :end_date
GROUP  BY sold_on
`;

/** Two sales on each day of January 1997 but the 13th, which has none and so fails its check. */
export const SALES = `
  CREATE TABLE sales (sold_on date NOT NULL, amount numeric(10, 2) NOT NULL);
  CREATE TABLE sales_summary (sale_date date PRIMARY KEY, orders bigint NOT NULL, revenue numeric(12, 2) NOT NULL);
  INSERT INTO sales SELECT day, 12.50 FROM generate_series(date '1997-01-01', '1997-01-31', '1 day') AS day, generate_series(1, 2)
   WHERE day <> '1997-01-13';
`;
