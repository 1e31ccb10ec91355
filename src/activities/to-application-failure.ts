import { ApplicationFailureCategory, type ApplicationFailureOptions } from '@temporalio/common';
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { KeyError } from '../calendar/key-error.js';
import { DEFAULTS, FAILURES, type FailureType } from '../contract.js';
import { Failure } from '../failure.js';
import type { AttemptNote } from './messages.js';

/** What every deploy and every other run brings about: not worth a warning in the log. */
const EXPECTED: ReadonlySet<FailureType> = new Set(['Conflict', 'SourceNotReady', 'WorkerOutdated']);

/**
 * What an activity throws in place of an error: the one place where Repave's errors become Temporal's. A {@link Failure} keeps
 * its type and message; a cancel stays a cancel; anything else is `Unexpected`, and of it only the class is told, since its
 * message may hold a row's values. The error itself never goes along as a cause: Temporal would keep its text.
 */
export function toApplicationFailure(error: unknown, note: AttemptNote, signal: AbortSignal): Error {
  if (error instanceof CancelledFailure || error instanceof ApplicationFailure) return error;
  if (signal.aborted && (error === signal.reason || isAbortError(error))) return new CancelledFailure('CANCELLED');
  if (error instanceof Failure) return fromFailure(error, note);
  if (error instanceof KeyError) return fromFailure(new Failure('InvalidInput', error.message), note);
  const kind = error instanceof Error ? error.constructor.name : typeof error;
  const message =
    `Something failed that Repave does not know (${kind}). The worker's log says where; ` +
    'if it was not the pipeline’s own code, it is a defect of Repave.';
  return fromFailure(withinAttempts(new Failure('Unexpected', message), note.attempt), note);
}

/** A failure that counts is final at the last attempt: for those that no claim in the ledger counts. */
export function withinAttempts(failure: Failure, attempt: number): Failure {
  if (FAILURES[failure.type] !== 'counted' || attempt < DEFAULTS.retryAttempts) return failure;
  return new Failure(failure.type, failure.message, { ...failure.options, final: true });
}

function fromFailure(failure: Failure, note: AttemptNote): ApplicationFailure {
  const options: ApplicationFailureOptions = {
    type: failure.type,
    message: failure.message,
    nonRetryable: failure.final,
    nextRetryDelay: failure.options.retryAfterMs,
    details: [note],
    category: EXPECTED.has(failure.type) ? ApplicationFailureCategory.BENIGN : undefined,
  };
  return ApplicationFailure.create(options);
}

function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
