import { Context } from '@temporalio/activity';
import { windowOf } from '../calendar/window.js';
import type { PartitionResult } from '../contract.js';
import { Failure } from '../failure.js';
import { fill } from '../warehouse/fill.js';
import type { FillRequest } from '../warehouse/fill-request.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { FillPartitionRequest } from './messages.js';
import { partitionResult } from './partition-result.js';
import { plannedPipeline } from './served-pipeline.js';

/**
 * Replaces one partition's rows, or leaves them as they were. A cancel, a time-out and a stopping worker end it only after
 * its transaction is rolled back. A retry finds what an earlier attempt has committed and returns that.
 */
export function fillPartition(deps: ActivityDeps): (request: FillPartitionRequest) => Promise<PartitionResult> {
  return answering('claim', async ({ pipeline: name, key, policy }, note) => {
    const { info, cancellationSignal: signal } = Context.current();
    if (!info.workflowExecution)
      throw new Failure('InvalidInput', 'fillPartition belongs to the workflow partition: start that.');
    const pipeline = await plannedPipeline(deps, name, policy.fingerprint);
    const request: FillRequest = {
      pipeline,
      window: windowOf(pipeline.partition, key),
      owner: { run: info.workflowExecution.runId, activity: info.activityId },
      attempt: { scheduledAt: info.currentAttemptScheduledTimestampMs, number: info.attempt },
      timeLeftMs: policy.timeoutMs,
      ledger: policy.ledger,
      signal,
      onStep: (step, rows) => note({ step, rows }),
    };
    return partitionResult(name, key, await deps.withDatabase(pipeline, (database) => fill(database, request)));
  });
}
