import type { Logger as TemporalLogger, LogLevel } from '@temporalio/common';
import { pino, type DestinationStream, type Logger } from 'pino';
import { plainLine } from './plain-line.js';
import { redactedError } from './redacted-error.js';

export type Log = Logger;

/**
 * A log to stderr: one JSON object a line with the stable fields `time` (ISO), `level`, `msg`, and on a terminal plain lines.
 * Errors go in as `error` and lose what may hold a row's values or a secret.
 */
export function createLog(level: string = 'info', destination: DestinationStream = standardError()): Log {
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

/** The same log for Temporal's SDK. */
export function temporalLogger(log: Log): TemporalLogger {
  const write = (level: LogLevel, message: string, meta: object = {}): void =>
    log[PINO_LEVEL[level]](plainMeta(meta), message);
  return {
    log: write,
    trace: (message, meta) => write('TRACE', message, meta),
    debug: (message, meta) => write('DEBUG', message, meta),
    info: (message, meta) => write('INFO', message, meta),
    warn: (message, meta) => write('WARN', message, meta),
    error: (message, meta) => write('ERROR', message, meta),
  };
}

const PINO_LEVEL = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

/** The SDK's own fields by the names of ours; a task's token says nothing to a reader. */
function plainMeta(meta: object): object {
  const { taskToken: _token, ...rest } = meta as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, typeof value === 'bigint' ? String(value) : value]),
  );
}

function standardError(): DestinationStream {
  if (!process.stderr.isTTY) return pino.destination({ fd: 2, sync: true });
  return { write: (line: string) => void process.stderr.write(plainLine(line)) };
}
