import { isGrpcServiceError } from '@temporalio/client';
import { Failure } from '../failure.js';

/** Status codes of gRPC. */
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;

/** Whether Temporal has answered that what it was asked about is not there. */
export function isNotThere(error: unknown): boolean {
  return isGrpcServiceError(error) && Number(error.code) === NOT_FOUND;
}

/**
 * What becomes of an error where Temporal was asked `what`: `PermissionDenied` where the worker may not ask that, else `Conflict`
 * with the server's word for why, since another try may succeed. What is no answer of the server stays as it is.
 */
export function unanswered(error: unknown, what: string): unknown {
  // The client's own methods hand the server's answer on as a cause.
  const answer = [error, (error as { readonly cause?: unknown } | null)?.cause].find((one) => isGrpcServiceError(one));
  if (!answer) return error;
  if (Number(answer.code) === PERMISSION_DENIED) {
    return new Failure(
      'PermissionDenied',
      `Temporal does not let this worker ask ${what}: its key must be able to read the namespace's workflows and schedules.`,
    );
  }
  // Such as `UNIMPLEMENTED: unknown method`, which begins every message of a gRPC error.
  const [, status = String(answer.code)] = /^\d+ ([A-Z_]+)/.exec(answer.message) ?? [];
  return new Failure('Conflict', `Temporal did not say ${what} (${status}). It is asked again.`);
}
