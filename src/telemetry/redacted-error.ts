import { TemporalFailure } from '@temporalio/common';
import { Failure } from '../failure.js';

export interface LoggedError {
  readonly type: string;
  readonly message?: string;
  /** SQLSTATE or the system's code. */
  readonly code?: string;
  /** Where it was thrown; without the first line, which is the message. */
  readonly at?: readonly string[];
}

/**
 * An error as a log may keep it. Of an error that the database sent, only its SQLSTATE: message, detail, where and query may
 * hold a row's values. Of others no field but these, and no URL.
 */
export function redactedError(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error };
  if (error instanceof Failure) return { type: error.type, message: error.message, code: error.options.sqlstate };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const type = 'type' in error && typeof error.type === 'string' ? error.type : error.constructor.name;
  if ('severity' in error) return { type, code, at: stackFrames(error) };
  const message = withoutUrls(error.message);
  return error instanceof TemporalFailure ? { type, message } : { type, message, code, at: stackFrames(error) };
}

function withoutUrls(text: string): string {
  return text.replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, '(a URL)');
}

/** Where an error was thrown: its stack without the first line, which is the message and may hold a row's values. */
export function stackFrames(error: unknown): string[] {
  return (error instanceof Error ? (error.stack ?? '') : '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim());
}
