import type { Logger as TemporalLogger, LogLevel, LogMetadata } from '@temporalio/common';
import { pino, type DestinationStream, type Logger } from 'pino';
import { Failure } from '../failure.js';
import { plainLine } from './plain-line.js';
import { redactedError } from './redacted-error.js';

export type Log = Logger;

/**
 * A log to stderr: one JSON object a line with the stable fields `time` (ISO), `level`, `msg`, and on a terminal plain lines.
 * Errors go in as `error` and lose what may hold a row's values or a secret. Throws `InvalidInput` for a level there is none of.
 */
export function createLog(level = 'info', destination: DestinationStream = standardError()): Log {
  if (level !== 'silent' && !Object.hasOwn(pino.levels.values, level)) {
    throw new Failure(
      'InvalidInput',
      `REPAVE_LOG_LEVEL is ${JSON.stringify(level)}: expected debug, info, warn or error.`,
    );
  }
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: redactedError, err: redactedError },
    },
    destination,
  );
}

/** The same log for Temporal's SDK. What its worker says of its own coming and going is for `debug`. */
export function temporalLogger(log: Log): TemporalLogger {
  const write = (level: LogLevel, message: string, meta: LogMetadata = {}): void => {
    const routine = meta.sdkComponent === 'worker' && (level === 'INFO' || message === NO_WORKFLOWS);
    log[routine ? 'debug' : PINO_LEVEL[level]](withoutToken(meta), message);
  };
  return {
    log: write,
    trace: (message, meta) => write('TRACE', message, meta),
    debug: (message, meta) => write('DEBUG', message, meta),
    info: (message, meta) => write('INFO', message, meta),
    warn: (message, meta) => write('WARN', message, meta),
    error: (message, meta) => write('ERROR', message, meta),
  };
}

/** Warned of by the worker of the control queue, which has none. */
const NO_WORKFLOWS = 'No workflows registered, not polling for workflow tasks';
const PINO_LEVEL = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

/** The SDK's fields without a task's token, which says nothing to a reader; JSON has no bigint. */
function withoutToken(meta: LogMetadata): object {
  const fields = Object.entries(meta).filter(([name]) => name !== 'taskToken');
  return Object.fromEntries(
    fields.map(([name, value]) => [name, typeof value === 'bigint' ? String(value) : (value as unknown)]),
  );
}

function standardError(): DestinationStream {
  if (!process.stderr.isTTY) return pino.destination({ fd: 2, sync: true });
  return { write: (line: string) => void process.stderr.write(plainLine(line)) };
}
