import { setMaxListeners } from 'node:events';
import { type Client, isGrpcDeadlineError } from '@temporalio/client';

/** How long a call that waits for long goes on before it is begun anew, so that what the SDK adds to its signal goes with it. */
const RENEW_MS = 10 * 60_000;
/** Answers in a row that come too late before a server counts as away. */
const TRIES = 5;
/** How often calls that began after the abort are ended. */
const AGAIN_MS = 50;

/**
 * Makes calls to the server that a signal ends: then it throws the signal's reason, and leaves no call, listener or timer
 * behind.
 */
export async function abortableCall<Result>(
  client: Client,
  signal: AbortSignal | undefined,
  call: () => Promise<Result>,
): Promise<Result> {
  if (!signal) return call();
  signal.throwIfAborted();
  // The SDK never takes its listeners off a signal again: it gets one that goes with the call.
  const own = new AbortController();
  // One a request: of a call that makes many, Node would warn.
  setMaxListeners(0, own.signal);
  let again: NodeJS.Timeout | undefined;
  const abort = (): void => {
    own.abort(signal.reason);
    // Nor does it look at a signal that was aborted between two of its requests.
    again = setInterval(() => own.signal.dispatchEvent(new Event('abort')), AGAIN_MS);
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await client.withAbortSignal(own.signal, call);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    clearInterval(again);
  }
}

/**
 * The same for a call that may wait for days, and that begun anew waits on: what it holds does not grow with the time that it
 * takes, and a server that is too busy to answer now and then does not end it.
 */
export async function longCall<Result>(
  client: Client,
  signal: AbortSignal = new AbortController().signal,
  call: () => Promise<Result>,
  renewMs = RENEW_MS,
): Promise<Result> {
  let inVain = 0;
  for (;;) {
    const renew = new AbortController();
    const timer = setTimeout(() => renew.abort(), renewMs);
    try {
      return await abortableCall(client, AbortSignal.any([signal, renew.signal]), call);
    } catch (error) {
      if (signal.aborted) throw error;
      inVain = renew.signal.aborted ? 0 : inVain + 1;
      if (inVain > 0 && (!isGrpcDeadlineError(error) || inVain > TRIES)) throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
