import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { shared } from '../support/servers.js';

/** What the page has people install, in the version that its snippets were written for. */
const PACKAGE = 'temporalio==1.35.0';

const execute = promisify(execFile);
let installed: Promise<string> | undefined;

/** A Python with Temporal's SDK, in a virtual environment of this test run's: its path. Rejects with what pip said. */
export function pythonWithTemporal(): Promise<string> {
  return (installed ??= install());
}

async function install(): Promise<string> {
  const environment = join((await shared('folder')).dir, 'python');
  const python = join(environment, 'bin', 'python');
  await step('python3', ['-m', 'venv', environment]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check'];
  await step(python, [...pip, '--only-binary', ':all:', PACKAGE]);
  return python;
}

async function step(program: string, words: string[]): Promise<void> {
  await execute(program, words, { maxBuffer: 16 * 2 ** 20 }).catch((error: unknown) => {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new Error(
      `The Python snippets of docs/callers.md need ${PACKAGE}, and it could not be installed.\n${stderr || message}`,
    );
  });
}
