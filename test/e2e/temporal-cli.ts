import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { testTemporal } from '../support/temporal.js';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the Temporal CLI as another system would, against the run's server and with nothing of this machine's settings. */
export async function temporal(namespace: string, ...words: readonly string[]): Promise<Ended> {
  const { address, cli } = await testTemporal();
  const child = spawn(cli, [...words, '--address', address, '--namespace', namespace], {
    env: { PATH: process.env.PATH, TEMPORAL_CONFIG_FILE: '/nowhere/temporal.toml' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** Makes a namespace, in which workflow ids are the test's own. */
export async function createNamespace(): Promise<string> {
  const namespace = `test-${randomBytes(8).toString('hex')}`;
  const { code, stderr } = await temporal(namespace, 'operator', 'namespace', 'create');
  if (code !== 0) throw new Error(`The namespace could not be made: ${stderr}`);
  return namespace;
}
