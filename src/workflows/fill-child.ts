import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  ChildWorkflowFailure,
  executeChild,
  ParentClosePolicy,
} from '@temporalio/workflow';
import type { BackfillPlan } from '../activities/messages.js';
import { partitionWorkflowId, WORKFLOW_TYPES } from '../contract.js';
import { waiting } from './control.js';
import { finalFailure } from './final-failure.js';
import type { partition } from './partition.js';
import type { ChildOutcome } from './tally.js';

/**
 * Fills one partition of a backfill by a child workflow and says how that ended; a child's failure is an outcome, never an
 * exception. Where another run fills the partition, does what the plan's `onBusy` says.
 */
export async function fillChild(plan: BackfillPlan, key: string): Promise<ChildOutcome> {
  for (;;) {
    try {
      return await runChild(plan, key);
    } catch (error) {
      // After a cancel was asked, whatever failure follows counts as cancelled.
      if (CancellationScope.current().consideredCancelled) return { kind: 'cancelled' };
      if (error instanceof ChildWorkflowFailure) return failed(error);
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    const outcome = await busy(plan, key);
    if (outcome) return outcome;
  }
}

async function runChild(plan: BackfillPlan, key: string): Promise<ChildOutcome> {
  // cancellationType stays absent: its default waits for the child's rollback; `undefined` would abandon the child.
  const result = await executeChild<typeof partition>(WORKFLOW_TYPES.partition, {
    workflowId: partitionWorkflowId(plan.pipeline, key),
    args: [{ pipeline: plan.pipeline, key }, plan.policy],
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    priority: { priorityKey: plan.priority },
    staticSummary: `${plan.pipeline} ${key}`,
  });
  return result.skipped ? { kind: 'skipped' } : { kind: 'filled', rows: result.rows };
}

/** What to do about a partition that another run fills; undefined: try again, it has ended. */
async function busy(plan: BackfillPlan, key: string): Promise<ChildOutcome | undefined> {
  const id = partitionWorkflowId(plan.pipeline, key);
  switch (plan.onBusy) {
    case 'skip':
      return { kind: 'skipped' };
    case 'fail':
      return {
        kind: 'failed',
        type: 'Busy',
        message: `Another run fills this partition (workflow ${id}). Wait until it has ended, or set onBusy to wait.`,
      };
    case 'wait':
      break;
    default:
      plan.onBusy satisfies never;
  }
  try {
    const { wanted } = await waiting().awaitPartition({
      pipeline: plan.pipeline,
      ledger: plan.policy.ledger,
      key,
      id,
      only: plan.only,
      fingerprint: plan.policy.fingerprint,
    });
    return wanted ? undefined : { kind: 'skipped' };
  } catch (error) {
    if (CancellationScope.current().consideredCancelled) return { kind: 'cancelled' };
    if (error instanceof ActivityFailure) return failed(error);
    throw error;
  }
}

function failed(error: ChildWorkflowFailure | ActivityFailure): ChildOutcome {
  const { type, message } = finalFailure(error);
  return { kind: 'failed', type, message };
}
