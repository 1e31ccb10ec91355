import { Context } from '@temporalio/activity';
import { ServiceError } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import { partitionWorkflowId } from '../contract.js';
import { Failure } from '../failure.js';
import { judgePartition } from '../plan/judge-partition.js';
import { parsePartitionInput } from '../plan/parse-input.js';
import { ledgerId } from '../warehouse/ledger.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import { fillPolicy } from './fill-policy.js';
import type { PlannedPartition, PlanPartitionRequest } from './messages.js';
import { requestedPipeline } from './served-pipeline.js';
import { startedBy } from './started-by.js';

/**
 * Judges the raw input of a partition started alone and resolves its settings. Writes nothing. Throws `InvalidInput`,
 * `UnknownPipeline`, `InvalidPipeline`; `Busy` where another run fills the partition and `onBusy` is `fail`.
 */
export function planPartition(deps: ActivityDeps): (request: PlanPartitionRequest) => Promise<PlannedPartition> {
  return answering('attempts', async ({ arguments: [raw, ...extra], id }) => {
    const input = parsePartitionInput(raw, extra);
    const pipeline = await requestedPipeline(deps, input.pipeline);
    judgePartition(input, pipeline, new Date());
    const ledger = await deps.withDatabase(pipeline, (database) => ledgerId(database, { orNewer: true }));
    const policy = { ...fillPolicy(pipeline, ledger), onBusy: input.onBusy, startedBy: await startedBy() };
    const notifies = deps.hooks.length > 0 || undefined;
    const planned: PlannedPartition = { pipeline: pipeline.name, key: input.key, policy, notifies };
    const other = partitionWorkflowId(pipeline.name, input.key);
    const onBusy = input.onBusy ?? 'wait';
    // Waiting needs no look: the window's lock does it.
    if (onBusy === 'wait' || other === id || !(await isRunning(other))) return planned;
    if (onBusy === 'skip') return { ...planned, skip: true };
    throw new Failure(
      'Busy',
      `Another run fills ${input.key} of ${pipeline.name} (workflow ${other}). Wait until it has ended, or set onBusy to wait.`,
    );
  });
}

async function isRunning(workflowId: string): Promise<boolean> {
  try {
    const { status } = await Context.current().client.workflow.getHandle(workflowId).describe();
    return status.name === 'RUNNING';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    if (!(error instanceof ServiceError)) throw error;
    throw new Failure('Conflict', `Temporal did not say whether ${workflowId} runs. It is asked again.`);
  }
}
