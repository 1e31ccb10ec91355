import { Context } from '@temporalio/activity';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import { wantedOf } from './await-partition.js';
import type { AwaitedPartitions, AwaitPartitionsRequest } from './messages.js';
import { RunEnds } from './run-ends.js';

/**
 * Waits until at least one of several other runs has ended, however it ends, and says which have, and what of their
 * partitions is still to be filled. A run that is not there has ended. Holds no fill's slot and no connection meanwhile.
 * Throws `Conflict` where Temporal does not say.
 */
export function awaitPartitions(
  deps: ActivityDeps,
  ends = new RunEnds(),
): (request: AwaitPartitionsRequest) => Promise<AwaitedPartitions> {
  return answering('attempts', async ({ runs, ...request }) => {
    // The first of none never comes.
    if (runs.length === 0) return { ended: [] };
    const { client, cancellationSignal } = Context.current();
    const over = await ends.firstOf(
      client,
      runs.map(({ id }) => id),
      cancellationSignal,
    );
    const ended = runs.filter(({ id }) => over.has(id));
    const all = ended.flatMap(({ keys }) => keys);
    const wanted = new Set(await wantedOf(deps, request, all));
    return { ended: ended.map(({ id, keys }) => ({ id, wantedKeys: keys.filter((key) => wanted.has(key)) })) };
  });
}
