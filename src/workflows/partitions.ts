import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  log,
  workflowInfo,
} from '@temporalio/workflow';
import type { EndBatchRequest, FillBatchRequest } from '../activities/messages.js';
import type { PartitionOutcome, PartitionsResult } from '../contract.js';
import { control } from './control.js';
import { fills } from './fills.js';
import { endedBy, finalFailure } from './final-failure.js';
import { isPolicy } from './handed-down.js';
import { plannedPlace } from './planned-place.js';

/**
 * Fills a backfill's neighbouring partitions, one after the other, in one activity. Each ends on its own: filled, failed and
 * recorded as such, or, where its source is not ready, to be tried again. Takes `{ pipeline, keys }` and the policy, from a
 * parent alone. Ends cancelled only once the open fill is rolled back and none of the run's queries is left.
 */
export async function partitions(...args: unknown[]): Promise<PartitionsResult> {
  const job = handedDown(args);
  const { pipeline, keys } = job;
  let failure: EndBatchRequest['failure'];
  try {
    return await fills(job.policy, keys).fillBatch(job);
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    if (!cancelled()) failure = finalFailure(error);
    const outcomes = await endBatch(job, failure);
    if (outcomes?.length === keys.length) return { pipeline, outcomes };
    if (failure && !cancelled()) throw endedBy(failure);
    throw isCancellation(error)
      ? error
      : new CancelledFailure('Cancelled: what was not filled holds what it held before.');
  }
}

/** What the batch has come to once nothing of it is left; undefined where that could not be made certain. */
async function endBatch(
  { pipeline, keys, policy }: FillBatchRequest,
  failure: EndBatchRequest['failure'],
): Promise<readonly PartitionOutcome[] | undefined> {
  const request = { pipeline, ...plannedPlace(policy), keys, run: workflowInfo().runId, failure };
  try {
    const ended = await CancellationScope.nonCancellable(() => control(policy.giveUpAfterMs).endBatch(request));
    return ended.outcomes;
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log.error('The end of the fills could not be made certain or recorded in the ledger', {
      pipeline,
      keys,
      failure: finalFailure(error).message,
    });
    return undefined;
  }
}

function handedDown(args: readonly unknown[]): FillBatchRequest {
  const [input, policy, ...rest] = args;
  if (workflowInfo().parent && rest.length === 0 && isPolicy(policy)) return { ...(input as BatchInput), policy };
  throw ApplicationFailure.nonRetryable(
    'A workflow of the type `partitions` is started by a backfill alone, whose pipeline has a `batch`: start `backfill`.',
    'InvalidInput',
  );
}

type BatchInput = Pick<FillBatchRequest, 'pipeline' | 'keys'>;

function cancelled(): boolean {
  return CancellationScope.current().consideredCancelled;
}
