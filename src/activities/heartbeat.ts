import { Context } from '@temporalio/activity';

/** Milliseconds: the worker sends at most one a second, so a cancel arrives within about two. */
const BEAT_MS = 1_000;

/**
 * Heartbeats from a timer until stopped, each with what `note` says then, however long a statement takes. The first comes
 * after a second: most activities are over by then, and cost none.
 */
export function startHeartbeat(note: () => unknown): { stop: () => void } {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(note()), BEAT_MS);
  return { stop: () => clearInterval(timer) };
}
