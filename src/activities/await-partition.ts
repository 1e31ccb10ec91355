import { Context } from '@temporalio/activity';
import { stateOf } from '../warehouse/partition-state.js';
import { partitionStates } from '../warehouse/partition-states.js';
import { comesAfter } from '../warehouse/upstream.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { AwaitedPartition, AwaitPartitionRequest } from './messages.js';
import { movedOf } from './moved-of.js';
import { withPlannedDatabase } from './planned-database.js';
import { RunEnds } from './run-ends.js';
import { plannedPipeline } from './served-pipeline.js';

/**
 * Waits until another run of a partition, or of several in one, has ended, however it ends, and says what of it is still to be
 * filled. Holds no fill's slot and no connection meanwhile.
 */
export function awaitPartition(
  deps: ActivityDeps,
  ends = new RunEnds(),
): (request: AwaitPartitionRequest) => Promise<AwaitedPartition> {
  return answering('attempts', async ({ pipeline: name, ledger, key, keys = [key], id, only, fingerprint }) => {
    const { client, cancellationSignal } = Context.current();
    await ends.firstOf(client, [id], cancellationSignal);
    if (!only) return { wanted: true };
    const wantedKeys = await wantedOf(deps, { pipeline: name, ledger, only, fingerprint }, keys);
    return { wanted: wantedKeys.length > 0, ...(keys.length > 1 ? { wantedKeys } : {}) };
  });
}

/** Those of some partitions that a backfill with this choice would still fill. */
export async function wantedOf(
  deps: ActivityDeps,
  { pipeline: name, ledger, only, fingerprint }: Choice,
  keys: readonly string[],
): Promise<readonly string[]> {
  if (!only) return keys;
  const pipeline = await plannedPipeline(deps, name);
  const spans = keys.map((key) => ({ from: key, to: key }));
  const rows = await withPlannedDatabase(deps, pipeline, ledger, async (database) =>
    partitionStates(database, name, spans, await comesAfter(database, pipeline)),
  );
  const states = new Map(keys.map((key) => [key, stateOf(rows.get(key), fingerprint)]));
  const filled = only.includes('changed') ? [...rows.values()].filter(({ key }) => states.get(key) === 'filled') : [];
  const moved = filled.length > 0 && (await deps.withDatabase(pipeline, (it) => movedOf(deps, pipeline, it, filled)));
  return keys.filter((key) => {
    const state = states.get(key);
    if (state === 'filled') return moved && moved.has(key);
    return state !== undefined && only.includes(state);
  });
}

/** What decides whether a backfill still wants a partition. */
type Choice = Pick<AwaitPartitionRequest, 'pipeline' | 'ledger' | 'only' | 'fingerprint'>;
