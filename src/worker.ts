/**
 * The process you deploy: `node dist/worker.js`. Settings come from the environment (docs/configuration.md). Exits with 0 after
 * SIGTERM or SIGINT, 2 where the set-up is wrong, 3 where a server cannot be reached, 70 for a defect.
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Failure } from './failure.js';
import { loadSettings } from './settings.js';
import { createLog, type Log } from './telemetry/log.js';
import { containExit } from './warehouse/source-being-read.js';
import { isUnreachable } from './worker/first-connection.js';
import { runWorker } from './worker/run-worker.js';
import { stopOnSignals } from './worker/stop-on-signals.js';
import { handleStrayErrors } from './worker/stray-errors.js';

export { READY, runWorker } from './worker/run-worker.js';
export { stopOnSignals } from './worker/stop-on-signals.js';
export { handleStrayErrors } from './worker/stray-errors.js';

const EXIT = { wrong: 2, unreachable: 3, defect: 70 } as const;

async function main(): Promise<void> {
  const log = createLog(process.env.REPAVE_LOG_LEVEL || 'info');
  containExit();
  handleStrayErrors(log);
  const stop = stopOnSignals(log);
  try {
    await runWorker(loadSettings(), stop, log);
    log.info('Worker has stopped');
  } catch (error) {
    process.exitCode = told(error, log);
  }
}

function told(error: unknown, log: Log): number {
  if (isUnreachable(error)) {
    log.fatal({ error }, error.message);
    return EXIT.unreachable;
  }
  if (error instanceof Failure && error.type !== 'Unexpected') {
    log.fatal({ error }, error.message);
    return EXIT.wrong;
  }
  log.fatal({ error }, 'The worker failed: this is a defect of Repave');
  return EXIT.defect;
}

const started = process.argv[1];
if (started !== undefined && realpathSync(started) === fileURLToPath(import.meta.url)) {
  await main();
  // A source that does not heed its signal would hold the process for as long as it likes.
  process.exit();
}
