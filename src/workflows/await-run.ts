import { CancellationScope, condition, isCancellation } from '@temporalio/workflow';
import type { AwaitRunRequest } from '../activities/messages.js';
import { waiting } from './control.js';
import type { Steering } from './steering.js';

/**
 * Waits until another workflow has ended, or this backfill is stopped; `until`: milliseconds since the epoch. Throws as cancelled,
 * and the `ActivityFailure` of a wait that came to nothing, as when its time is over.
 */
export async function awaitRun(request: AwaitRunRequest, steering: Steering, until: number): Promise<void> {
  const scope = new CancellationScope();
  try {
    await scope.run(async () => {
      void condition(() => steering.stopping).then(
        () => scope.cancel(),
        () => undefined,
      );
      await waiting(until).awaitRun(request);
    });
  } catch (error) {
    if (!isCancellation(error) || CancellationScope.current().consideredCancelled) throw error;
  } finally {
    // Ends the wait for a stop, too.
    scope.cancel();
  }
}
