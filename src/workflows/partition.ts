import {
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  log,
  workflowInfo,
} from '@temporalio/workflow';
import type { FillPartitionRequest, PlannedPartition } from '../activities/messages.js';
import { type PartitionInput, type PartitionResult, shortened } from '../contract.js';
import { control } from './control.js';
import { fills } from './fills.js';
import { endedBy, type FinalFailure, finalFailure } from './final-failure.js';
import { isPolicy } from './handed-down.js';
import { plannedPlace } from './planned-place.js';
import { startNotice } from './start-notice.js';

/**
 * Fills one partition: replaces its rows, or leaves them as they were. Takes one {@link PartitionInput}; a backfill hands its
 * policy down as the second argument, so that nothing is planned twice. Ends cancelled only once the fill is rolled back and
 * none of its queries is left, and fails only as one of the contract's failure types, recorded in the ledger.
 */
export async function partition(...args: unknown[]): Promise<PartitionResult> {
  const job = handedDown(args) ?? (await plan(args));
  if (job.skip) return skipped(job);
  try {
    return await fills(job.policy, [job.key]).fillPartition({
      pipeline: job.pipeline,
      key: job.key,
      policy: job.policy,
    });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    return cancelled() ? await endCancelled(job, error) : await endFailed(job, error);
  }
}

/** After a cancel was asked, whatever failure followed counts as cancelled: unless the fill had committed after all. */
async function endCancelled(job: FillPartitionRequest, error: ActivityFailure): Promise<PartitionResult> {
  const { pipeline, key, policy } = job;
  const run = workflowInfo().runId;
  try {
    const committed = await CancellationScope.nonCancellable(() =>
      control(policy.giveUpAfterMs).endFill({ pipeline, ...plannedPlace(policy), key, run }),
    );
    if (committed) return committed;
  } catch (failure) {
    if (!(failure instanceof ActivityFailure)) throw failure;
    log.error('The cancelled fill could not be ended for certain', {
      pipeline,
      key,
      failure: finalFailure(failure).message,
    });
  }
  throw isCancellation(error) ? error : new CancelledFailure('Cancelled: the partition holds what it held before.');
}

async function endFailed(job: PlannedPartition, error: ActivityFailure): Promise<PartitionResult> {
  const { pipeline, key, policy } = job;
  const failure = finalFailure(error);
  try {
    const committed = await CancellationScope.nonCancellable(() =>
      control(policy.giveUpAfterMs).recordFailure({
        pipeline,
        ...plannedPlace(policy),
        key,
        run: workflowInfo().runId,
        ...failure,
      }),
    );
    if (committed) return committed;
  } catch (unrecorded) {
    if (!(unrecorded instanceof ActivityFailure)) throw unrecorded;
    log.error('The failure could not be recorded in the ledger', {
      pipeline,
      key,
      failure: finalFailure(unrecorded).message,
    });
  }
  if (cancelled()) throw new CancelledFailure('Cancelled: the partition holds what it held before.');
  if (job.notifies) await tellFailed(job, failure);
  throw endedBy(failure);
}

/** Tells of a partition that was started alone; of a backfill's, that tells itself. */
async function tellFailed({ pipeline, key, policy }: PlannedPartition, failure: FinalFailure): Promise<void> {
  const { workflowId: id, runId: run } = workflowInfo();
  const { ledger, database, source, startedBy } = plannedPlace(policy);
  await startNotice({
    id: `${run}/partition-failed`,
    event: 'partition-failed',
    at: new Date(Date.now()).toISOString(),
    pipeline,
    key,
    ledger,
    database,
    source,
    partition: { id, run, startedBy },
    failures: [{ key, type: failure.type, message: shortened(failure.message) }],
  });
}

async function plan(args: readonly unknown[]): Promise<PlannedPartition> {
  try {
    return await control().planPartition({ arguments: args, id: workflowInfo().workflowId });
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    if (cancelled()) throw new CancelledFailure('Cancelled before anything was begun.');
    throw endedBy(finalFailure(error));
  }
}

/** Only a parent workflow hands a policy down; anything else as a second argument is for the plan to refuse. */
function handedDown(args: readonly unknown[]): PlannedPartition | undefined {
  const [input, policy, ...rest] = args;
  if (!workflowInfo().parent || rest.length > 0 || !isPolicy(policy)) return undefined;
  const { pipeline, key } = input as PartitionInput;
  return { pipeline, key, policy };
}

function skipped({ pipeline, key }: PlannedPartition): PartitionResult {
  return { pipeline, key, rows: 0, deleted: 0, seconds: 0, warnings: [], skipped: true };
}

function cancelled(): boolean {
  return CancellationScope.current().consideredCancelled;
}
