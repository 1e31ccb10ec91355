import type { Context } from '../../src/cli/command.js';
import { createOutput, type OutputOptions } from '../../src/cli/output.js';
import { loadSettings } from '../../src/settings.js';

/** A command's context whose words are kept instead of written. */
export interface KeptContext extends Context {
  stdout(): string;
  stderr(): string;
}

/** Settings and streams for a command that runs in the test's own process; a terminal of 80 columns where `isTTY`. */
export function keptContext(
  project: string,
  env: Readonly<Record<string, string>>,
  { isTTY = false, ...options }: OutputOptions & { readonly isTTY?: boolean } = {},
): KeptContext {
  const said = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') => ({
    isTTY,
    columns: 80,
    write: (text: string) => {
      said[name] += text;
      return true;
    },
  });
  return {
    settings: loadSettings(env, project),
    output: createOutput({ color: false, ...options }, {}, stream('stdout'), stream('stderr')),
    stdout: () => said.stdout,
    stderr: () => said.stderr,
  };
}
