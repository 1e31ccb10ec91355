import { setTimeout as delay } from 'node:timers/promises';
import { SourceError } from 'repave';

/** Answers after which a server wants to be asked again. */
const BUSY = new Set([429, 502, 503, 504]);
/** Times that one page is asked for. Once they are used up the fill fails as SourceFailed, and Repave tries it again later. */
const TRIES = 6;
/** A server that wants to be left alone for longer is left to Repave's own retries, which hold no slot of the worker. */
const LONGEST_WAIT_MS = 30_000;

/**
 * Gets a JSON document whole, or throws. A busy server is asked again when it says (`Retry-After`, in seconds or as a date),
 * else after a growing pause; so is one whose answer breaks off. Any other answer is thrown at once.
 */
export async function getJson(url: URL, signal: AbortSignal): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    const { document, problem, waitMs = 250 * 2 ** (tries - 1) } = await tryToGet(url, signal);
    if (problem === undefined) return document;
    // The path alone: a query may hold a key.
    if (tries === TRIES || waitMs > LONGEST_WAIT_MS)
      throw new SourceError(`${url.host}${url.pathname} ${problem} (try ${tries})`);
    await delay(waitMs, undefined, { signal });
  }
}

interface Answer {
  readonly document?: unknown;
  /** Why it is to be asked again. */
  readonly problem?: string;
  readonly waitMs?: number;
}

async function tryToGet(url: URL, signal: AbortSignal): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(url, { signal, headers: { accept: 'application/json' } });
  } catch {
    signal.throwIfAborted();
    return { problem: 'did not answer' };
  }
  if (BUSY.has(response.status)) {
    await response.body?.cancel();
    return { problem: `answered ${response.status}`, waitMs: retryAfterMs(response.headers.get('retry-after')) };
  }
  if (!response.ok) throw new SourceError(`${url.host}${url.pathname} answered ${response.status}`);
  try {
    return { document: await response.json() };
  } catch {
    signal.throwIfAborted();
    return { problem: 'broke off in the middle of its answer' };
  }
}

function retryAfterMs(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
