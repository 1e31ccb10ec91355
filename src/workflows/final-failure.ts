import {
  type ActivityFailure,
  ApplicationFailure,
  type ChildWorkflowFailure,
  ServerFailure,
  TerminatedFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { AttemptNote } from '../activities/messages.js';
import { isFailureType, type FailureType } from '../contract.js';

/** How an activity or a child ended for good, in the contract's own types: never a bare time-out. */
export interface FinalFailure {
  readonly type: FailureType;
  readonly message: string;
  /** The attempt that failed; 0 where none is known. */
  readonly attempt: number;
  /** Of what plans a backfill: the worker that failed has a notify hook. */
  readonly notifies?: true;
}

/** Reads the failure of an activity that is not retried any more. */
export function finalFailure(error: ActivityFailure | ChildWorkflowFailure): FinalFailure {
  const cause = error.cause;
  if (cause instanceof ApplicationFailure) {
    // The next retry would have come after its time.
    return error.retryState === 'TIMEOUT' ? givenUp(fromApplication(cause)) : fromApplication(cause);
  }
  if (cause instanceof TimeoutFailure) return fromTimeout(cause);
  if (cause instanceof TerminatedFailure) {
    return { type: 'Unexpected', message: 'The run was terminated. Start it again.', attempt: 0 };
  }
  if (cause instanceof ServerFailure) {
    // Such as an answer over its limits, which it does not keep.
    const message = `Temporal did not take how it ended (${cause.message}). The worker's log tells of it.`;
    return { type: 'Unexpected', message, attempt: 0 };
  }
  return { type: 'Unexpected', message: 'The run ended by itself, as cancelled. Start it again.', attempt: 0 };
}

/** The failure that ends a workflow in place of an activity's. */
export function endedBy(failure: FinalFailure): ApplicationFailure {
  return ApplicationFailure.nonRetryable(failure.message, failure.type);
}

function fromApplication(cause: ApplicationFailure): FinalFailure {
  const noted = readNote(cause.details?.[0]);
  const message = cause.message;
  if (isFailureType(cause.type)) return { type: cause.type, message, ...noted };
  return {
    type: 'Unexpected',
    message: `It failed as ${cause.type ?? 'an unnamed kind'}, and was given up: ${message}`,
    ...noted,
  };
}

function fromTimeout(cause: TimeoutFailure): FinalFailure {
  const noted = readNote(cause.lastHeartbeatDetails);
  if (cause.cause instanceof ApplicationFailure) {
    return givenUp(fromApplication(cause.cause));
  }
  switch (cause.timeoutType) {
    case 'HEARTBEAT':
      return timedOut('Its worker was lost, and the time to try again (giveUpAfter) is over.', noted);
    case 'START_TO_CLOSE':
      return timedOut(
        'Its last attempt took longer than the pipeline’s timeout. Raise timeout, or make it faster.',
        noted,
      );
    default:
      return timedOut(
        'No attempt ended within the pipeline’s giveUpAfter. See that a worker runs, and start it again.',
        noted,
      );
  }
}

function givenUp(last: FinalFailure): FinalFailure {
  return { ...last, message: `${last.message} It was given up then, as giveUpAfter says.` };
}

function timedOut(message: string, noted: AttemptNote): FinalFailure {
  return { type: 'TimedOut', message, ...noted };
}

function readNote(note: unknown): AttemptNote {
  const { attempt, notifies } = (note ?? {}) as Partial<AttemptNote>;
  return { attempt: typeof attempt === 'number' ? attempt : 0, ...(notifies === true ? { notifies } : {}) };
}
