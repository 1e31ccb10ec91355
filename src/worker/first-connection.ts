import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../failure.js';
import type { Log } from '../telemetry/log.js';
import { ServerUnreachable } from '../temporal/server-unreachable.js';

const PAUSE_MS = 1_000;

/**
 * Connects to a server that may still be starting: tries once a second for `waitMs`, then throws what the last try threw. Only
 * a server that cannot be reached is tried again. Ends early, with the signal's reason, when aborted.
 */
export async function firstConnection<Connection>(
  connect: () => Promise<Connection>,
  { waitMs, signal, log }: { waitMs: number; signal: AbortSignal; log: Log },
): Promise<Connection> {
  const until = Date.now() + waitMs;
  for (let said = false; ; said = true) {
    signal.throwIfAborted();
    try {
      return await connect();
    } catch (error) {
      if (!isUnreachable(error) || Date.now() >= until) throw error;
      if (!said) log.warn({ error }, `${error.message} Trying again for ${Math.round(waitMs / 1000)} s.`);
    }
    // Aborted while it sleeps: the signal's own reason is thrown above.
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}

export function isUnreachable(error: unknown): error is Failure | ServerUnreachable {
  return error instanceof ServerUnreachable || (error instanceof Failure && error.type === 'DatabaseUnavailable');
}
