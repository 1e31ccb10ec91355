import { WorkflowNotFoundError } from '@temporalio/client';
import { backfillWorkflowId, RunFailed, type RepaveClient } from '../client.js';
import { type BackfillInput, WORKFLOW_TYPES } from '../contract.js';
import { readBackfills } from '../warehouse/backfills.js';
import type { Database } from '../warehouse/database.js';

/** Backfills of an earlier demo that are looked for in the ledger. It begins one after the other. */
const LOOKED_FOR = 100;

/**
 * Ids of the backfills of a pipeline that an earlier demo, stopped half-way, has left open: those in the ledger, and those that
 * no worker had begun yet, of which Temporal alone knows.
 */
export async function leftOpen(repave: RepaveClient, database: Database, pipeline: string): Promise<string[]> {
  const ids = (await readBackfills(database, { pipeline, open: true, limit: LOOKED_FOR })).map(({ id }) => id);
  const query = `WorkflowType = '${WORKFLOW_TYPES.backfill}' AND ExecutionStatus = 'Running'`;
  // The demo's server has no other pipeline's.
  for await (const { workflowId } of repave.temporal.workflow.list({ query })) ids.push(workflowId);
  const unique = [...new Set(ids)];
  // Neither hears of every end at once.
  const running = await Promise.all(unique.map((id) => runs(repave, id)));
  return unique.filter((_, index) => running[index]);
}

async function runs({ temporal }: RepaveClient, id: string): Promise<boolean> {
  try {
    return (await temporal.workflow.getHandle(id).describe()).status.name === 'RUNNING';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/**
 * Cancels what {@link leftOpen} finds, but the backfill that is to go on, and waits until it has ended. It may have been planned by
 * a version of the pipeline that no worker has any more: then it would wait for one, and hold its dates, for ever. Needs a worker.
 */
export async function cancelLeftOpen(
  repave: RepaveClient,
  database: Database,
  goesOn: BackfillInput,
  say: (line: string) => void,
): Promise<void> {
  for (const id of await leftOpen(repave, database, goesOn.pipeline)) {
    if (id === backfillWorkflowId(goesOn)) continue;
    const handle = repave.handle(id);
    try {
      await handle.cancel();
      say(`What an earlier run left unfinished is cancelled: ${id}.`);
      await handle.result();
    } catch (error) {
      // It has ended meanwhile, or as it was told to.
      if (!(error instanceof WorkflowNotFoundError) && !(error instanceof RunFailed)) throw error;
    }
  }
}
