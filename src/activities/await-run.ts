import { Context } from '@temporalio/activity';
import { answering } from './answering.js';
import type { AwaitedRun, AwaitRunRequest } from './messages.js';
import { RunEnds } from './run-ends.js';
import { runState } from './run-state.js';

/** Milliseconds between two looks for a workflow that is not there yet. */
const LOOK_EVERY_MS = 1_000;

/**
 * Waits until a workflow has ended, however it ends and however often it continues as new. One that is not there is looked for
 * as long as the request says, since it may be about to be started. Holds no fill's slot and no connection meanwhile. Throws
 * as {@link runState}.
 */
export function awaitRun(ends = new RunEnds()): (request: AwaitRunRequest) => Promise<AwaitedRun> {
  return answering('attempts', async ({ id, comesWithinMs }) => {
    const context = Context.current();
    const { client, cancellationSignal } = context;
    const until = Date.now() + comesWithinMs;
    for (let found = false; ;) {
      const state = await runState(client, id);
      found ||= state !== 'not there';
      if (state === 'running') await ends.firstOf(client, [id], cancellationSignal);
      else if (found || Date.now() >= until) return { found };
      else await context.sleep(LOOK_EVERY_MS);
    }
  });
}
