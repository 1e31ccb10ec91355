import { Context } from '@temporalio/activity';
import { ServiceError, WorkflowContinuedAsNewError, WorkflowFailedError } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import { Failure } from '../failure.js';
import { stateOf } from '../plan/state.js';
import { partitionRows } from '../warehouse/partitions.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { AwaitedPartition, AwaitPartitionRequest } from './messages.js';
import { withPlannedDatabase } from './planned-database.js';
import { plannedPipeline } from './served-pipeline.js';

/**
 * Waits until another run of a partition has ended, however it ends, and says whether the partition is still to be filled.
 * Holds no fill's slot and no connection meanwhile.
 */
export function awaitPartition(deps: ActivityDeps): (request: AwaitPartitionRequest) => Promise<AwaitedPartition> {
  return answering('attempts', async ({ pipeline: name, ledger, key, id, only, fingerprint }) => {
    await ended(id);
    if (!only) return { wanted: true };
    const pipeline = await plannedPipeline(deps, name);
    const rows = await withPlannedDatabase(deps, pipeline, ledger, (database) =>
      partitionRows(database, name, key, key),
    );
    const state = stateOf(rows.get(key), fingerprint);
    return { wanted: state !== 'filled' && only.includes(state) };
  });
}

async function ended(workflowId: string): Promise<void> {
  const { client, cancellationSignal: signal } = Context.current();
  try {
    await client.workflow.getHandle(workflowId).result();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof WorkflowFailedError || error instanceof WorkflowContinuedAsNewError) return;
    if (error instanceof WorkflowNotFoundError) return;
    if (error instanceof ServiceError) {
      throw new Failure('Conflict', `Temporal did not say when ${workflowId} ends. It is asked again.`);
    }
    throw error;
  }
}
