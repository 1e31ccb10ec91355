import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { startTemporal, type TemporalOptions, type TemporalServer } from '../../src/dev/temporal-server.js';
import { CLI_HOME, shared } from './servers.js';

/** The run's Temporal server, shared by all test files: each uses task queues and workflow ids of its own. */
export async function testTemporal(): Promise<{ readonly address: string; readonly cli: string }> {
  return shared('temporal');
}

/** Starts a Temporal server of the test's own, to be stopped or killed. `dir` starts an earlier one's state again. */
export async function startPrivateTemporal(options: Partial<TemporalOptions> = {}): Promise<TemporalServer> {
  const dir = options.dir ?? mkdtempSync(join((await shared('folder')).dir, 'temporal-'));
  return startTemporal({ home: CLI_HOME, env: process.env, persistent: true, ui: false, ...options, dir });
}
