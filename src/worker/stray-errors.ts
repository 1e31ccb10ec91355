import type { Log } from '../telemetry/log.js';
import { stackFrames } from '../telemetry/redacted-error.js';
import { errorClass } from '../warehouse/errors.js';
import { failStraySource } from '../warehouse/source-being-read.js';

/** The exit code of a defect. */
const DEFECT = 70;

/**
 * Takes over what the process would die of with the error's text on stderr. An error of a pipeline's code fails that
 * pipeline's fill, and the worker goes on; any other is a defect, and ends the process with 70. The log never tells a
 * message, which may hold a row's values.
 */
export function handleStrayErrors(log: Log): void {
  const handle = (error: unknown): void => {
    const thrown = { type: error instanceof Error ? errorClass(error) : typeof error, at: stackFrames(error) };
    if (failStraySource(error)) {
      log.error({ thrown }, 'The code of a pipeline threw outside what its rows() awaits; the worker goes on');
      return;
    }
    log.fatal({ thrown }, 'Something failed that nothing waited for: this is a defect of Repave');
    process.exit(DEFECT);
  };
  process.on('uncaughtException', handle);
  process.on('unhandledRejection', handle);
}
