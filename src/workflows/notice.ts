import {
  ActivityFailure,
  ApplicationFailure,
  isCancellation,
  log,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { NoticeRequest } from '../activities/messages.js';
import { telling } from './control.js';

/**
 * Tells of one event, again and again for a day, and fails as `NotTold` where nobody has taken it by then. Takes one
 * {@link NoticeRequest}, from a parent alone, which does not wait for it.
 */
export async function notice(...args: unknown[]): Promise<void> {
  const request = handedDown(args);
  try {
    await telling().tell(request);
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    const message = `Nobody was told of ${request.id}, and it was given up. ${lastTry(error)}`;
    log.error(message, { pipeline: request.pipeline, event: request.event });
    throw ApplicationFailure.nonRetryable(message, 'NotTold');
  }
}

function lastTry({ cause }: ActivityFailure): string {
  const last = cause instanceof TimeoutFailure ? cause.cause : cause;
  return last instanceof ApplicationFailure ? `The last try: ${last.message}` : 'No try has ended.';
}

function handedDown(args: readonly unknown[]): NoticeRequest {
  const [request, ...rest] = args;
  if (workflowInfo().parent && rest.length === 0 && isRequest(request)) return request;
  throw ApplicationFailure.nonRetryable(
    'A workflow of the type `notice` is started by a run that has something to tell alone: set REPAVE_NOTIFY_URL, and start `backfill` or `partition`.',
    'InvalidInput',
  );
}

function isRequest(value: unknown): value is NoticeRequest {
  if (typeof value !== 'object' || value === null) return false;
  const { id, event, at, pipeline } = value as Partial<NoticeRequest>;
  return [id, event, at, pipeline].every((field) => typeof field === 'string');
}
