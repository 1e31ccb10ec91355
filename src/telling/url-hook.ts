import { type Hook, NotTold } from './hook.js';
import { signature } from './signature.js';

/** Milliseconds that a receiver has to take a document. */
const ANSWER_WITHIN_MS = 10_000;

/**
 * A hook that POSTs the document to a URL. Any status of 2xx is a yes; no redirect is followed, since the one who may be told
 * is the one who is named; the answer's body is not read. A user and password of the URL go as HTTP's Basic credentials.
 */
export function urlHook(url: URL, secret: string | undefined, { withinMs = ANSWER_WITHIN_MS } = {}): Hook {
  const { host } = url;
  const address = new URL(url);
  address.username = address.password = '';
  const credentials = basicCredentials(url);
  return {
    kind: 'url',
    async tell(document, signal) {
      const late = AbortSignal.timeout(withinMs);
      try {
        const { status, body } = await fetch(address, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'user-agent': 'repave',
            ...(credentials === undefined ? {} : { authorization: credentials }),
            ...(secret === undefined ? {} : { 'repave-signature': signature(secret, document) }),
          },
          body: document,
          redirect: 'manual',
          signal: AbortSignal.any([signal, late]),
        });
        await body?.cancel();
        if (status >= 200 && status < 300) return;
        throw new NotTold(`The notify hook at ${host} answered ${status}${answerMeans(status)}.`);
      } catch (error) {
        if (error instanceof NotTold) throw error;
        signal.throwIfAborted();
        if (late.aborted) throw new NotTold(`The notify hook at ${host} did not answer within ${withinMs / 1000} s.`);
        throw new NotTold(`The notify hook at ${host} could not be reached (${reasonOf(error)}).`);
      }
    },
  };
}

function basicCredentials({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

function answerMeans(status: number): string {
  if (status >= 300 && status < 400) return ', a redirect, which is not followed: name the address that it leads to';
  return '';
}

/** The system's own code alone: messages of an HTTP client may hold the URL. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? code : 'no answer';
}
