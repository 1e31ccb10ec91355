import type { RepaveClient } from '../client.js';
import type { Progress } from '../contract.js';
import type { BackfillRow } from '../warehouse/backfills.js';

/**
 * How a backfill stands: the ledger's word where it has ended, Temporal's where it has not. `unknown`: the ledger has it
 * open, and Temporal was not asked or did not answer.
 */
export type BackfillState = 'running' | 'done' | 'incomplete' | 'cancelled' | 'failed' | 'terminated' | 'unknown';

export interface BackfillView extends BackfillRow {
  readonly state: BackfillState;
  /** Present while it runs and a worker answers. */
  readonly progress?: Progress;
}

/** Backfills with their states. Only those that the ledger has open are asked of Temporal. */
export async function viewBackfills(
  rows: readonly BackfillRow[],
  repave: RepaveClient | undefined,
): Promise<BackfillView[]> {
  return Promise.all(rows.map((row) => viewBackfill(row, repave)));
}

async function viewBackfill(row: BackfillRow, repave: RepaveClient | undefined): Promise<BackfillView> {
  if (row.outcome !== null) return { ...row, state: row.outcome };
  if (!repave) return { ...row, state: 'unknown' };
  const state = await stateInTemporal(row, repave);
  if (state !== 'running') return { ...row, state };
  const progress = await repave
    .handle(row.id)
    .progress()
    // No worker answers; that is said of the task queue, not of each backfill.
    .catch(() => undefined);
  return { ...row, state, progress };
}

/** How a run has ended that the ledger still has open, in Temporal's words. */
const ENDED_AS: Readonly<Record<string, BackfillState>> = {
  COMPLETED: 'done',
  CANCELLED: 'cancelled',
  FAILED: 'failed',
  TERMINATED: 'terminated',
  TIMED_OUT: 'terminated',
};

async function stateInTemporal({ id, run }: BackfillRow, repave: RepaveClient): Promise<BackfillState> {
  try {
    const newest = await repave.temporal.workflow.getHandle(id).describe();
    const { firstRunId } = newest.raw.workflowExecutionInfo ?? {};
    const own = !firstRunId || firstRunId === run;
    if (own && newest.status.name === 'RUNNING') return 'running';
    // The id has run again since: what is asked is how its earlier run ended.
    const { status } = own ? newest : await repave.temporal.workflow.getHandle(id, run).describe();
    return ENDED_AS[status.name] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
