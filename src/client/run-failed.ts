import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, TerminatedFailure, TimeoutFailure } from '@temporalio/common';
import { isFailureType, type BackfillResult, type FailureType } from '../contract.js';

/** How a run that did not succeed has ended: a failure type of the contract, or ended from outside. */
export type EndedAs = FailureType | 'Cancelled' | 'Terminated';

/** A run ended without a result. `type` says how; the message what and what to do. */
export class RunFailed extends Error {
  override readonly name: string = 'RunFailed';

  constructor(
    readonly type: EndedAs,
    message: string,
  ) {
    super(message);
  }
}

/** A backfill ended without success. As `BackfillIncomplete` it has a result all the same. */
export class BackfillFailed extends RunFailed {
  override readonly name = 'BackfillFailed';

  constructor(
    type: EndedAs,
    message: string,
    readonly result: BackfillResult | undefined,
  ) {
    super(type, message);
  }
}

/** A failed run, told in the contract's types; any other error as it is. */
export function runFailed(error: unknown): unknown {
  if (!(error instanceof WorkflowFailedError)) return error;
  const { type, message } = told(error);
  return new RunFailed(type, message);
}

/** The same for a backfill. */
export function backfillFailed(error: unknown): unknown {
  if (!(error instanceof WorkflowFailedError)) return error;
  const { type, message } = told(error);
  const detail = error.cause instanceof ApplicationFailure ? error.cause.details?.[0] : undefined;
  return new BackfillFailed(type, message, type === 'BackfillIncomplete' ? (detail as BackfillResult) : undefined);
}

function told({ cause, message }: WorkflowFailedError): { type: EndedAs; message: string } {
  if (cause instanceof ApplicationFailure) {
    return { type: isFailureType(cause.type) ? cause.type : 'Unexpected', message: cause.message };
  }
  if (cause instanceof CancelledFailure)
    return { type: 'Cancelled', message: 'It was cancelled; what was filled stays filled.' };
  if (cause instanceof TerminatedFailure) {
    return {
      type: 'Terminated',
      message: 'It was terminated: fills that ran may have gone on to their end. Start it again.',
    };
  }
  if (cause instanceof TimeoutFailure) {
    return {
      type: 'TimedOut',
      message: 'The run’s own time-out, set where it was started, is over. Start it again without.',
    };
  }
  return { type: 'Unexpected', message };
}
