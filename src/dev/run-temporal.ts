import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import type { Settings } from '../settings.js';
import { repaveFolder } from './dev-file.js';
import { cliHome } from './local-temporal.js';
import { onlyThisServer } from './only-this-server.js';
import { findTemporalCli } from './temporal-cli.js';

/** The Temporal CLI that a running `repave dev` found, else the first of this machine, fetched if need be. Throws `InvalidInput`. */
export async function findTemporal(settings: Settings, say: (line: string) => void): Promise<string> {
  const used = settings.dev?.temporalCli;
  if (used && existsSync(used)) return used;
  const { path } = await findTemporalCli({ home: cliHome(repaveFolder(settings.project)), env: settings.env, say });
  return path;
}

/**
 * Runs the CLI with these arguments on our own terminal, against the server that the environment names, else a running
 * `repave dev`'s. Resolves to its exit code; ended by a signal, to 128 and its number, as a shell has it.
 */
export async function runTemporal(cli: string, given: readonly string[], settings: Settings): Promise<number> {
  const child = spawn(cli, given, { stdio: 'inherit', env: environment(settings) });
  // Ctrl-C reaches the CLI by itself; it decides when to end.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}

/** As the rest of Repave has it: whoever names a server means it; else a running `repave dev`, and no profile's key for that. */
function environment({ env, dev }: Settings): NodeJS.ProcessEnv {
  if (!dev || env.TEMPORAL_ADDRESS || env.TEMPORAL_PROFILE || env.TEMPORAL_CONFIG_FILE) return env;
  const others = Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_') || name === 'TEMPORAL_NAMESPACE');
  return { ...Object.fromEntries(others), ...onlyThisServer(dev.temporalAddress) };
}
