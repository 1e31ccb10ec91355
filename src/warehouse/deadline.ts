import { Failure } from '../failure.js';
import { toFailure } from './errors.js';
import type { FillRequest } from './fill-request.js';

/**
 * Hands `work` the request with a signal that is aborted once its time is up, too. Rejects with `request.signal.reason` once
 * that is aborted, else with a `Failure`: `TimedOut` where the time was up.
 */
export async function withDeadline<
  T,
  Request extends Pick<FillRequest, 'pipeline' | 'window' | 'timeLeftMs' | 'signal'>,
>(request: Request, work: (request: Request) => Promise<T>): Promise<T> {
  const deadline = new AbortController();
  const timer = setTimeout(() => {
    deadline.abort(
      new Failure(
        'TimedOut',
        `The attempt on ${request.pipeline.name} ${request.window.key} took longer than ${describeMs(request.timeLeftMs)}, the pipeline’s \`timeout\`. Raise it, or make the query faster.`,
      ),
    );
  }, request.timeLeftMs);
  try {
    return await work({ ...request, signal: AbortSignal.any([request.signal, deadline.signal]) });
  } catch (error) {
    request.signal.throwIfAborted();
    throw deadline.signal.aborted ? (deadline.signal.reason as Failure) : toFailure(error);
  } finally {
    clearTimeout(timer);
  }
}

function describeMs(milliseconds: number): string {
  return milliseconds >= 1000 ? `${Math.round(milliseconds / 1000)} s` : `${milliseconds} ms`;
}
