import type { Log } from '../telemetry/log.js';

/** The exit code of a process that was told to end at once. */
const INTERRUPTED = 130;

/**
 * A signal that SIGTERM or SIGINT aborts: a worker is to take nothing new and let its fills end. A second one ends the process
 * at once, with 130, which is safe too.
 */
export function stopOnSignals(log: Log): AbortSignal {
  const stopping = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(INTERRUPTED);
      log.info({ signal: name }, 'Stopping: fills that run get their time, once more ends at once');
      stopping.abort();
    });
  }
  return stopping.signal;
}
