import { Context } from '@temporalio/activity';
import { Failure } from '../failure.js';
import type { FillRequest } from '../warehouse/fill-request.js';
import type { ActivityDeps } from './activity-deps.js';
import type { FillAttempt } from './fill-key.js';
import type { FillPolicy } from './messages.js';
import { plannedPipeline } from './served-pipeline.js';

/** The attempt that this activity is: whose fills it makes, and its place among that run's attempts. */
export async function fillAttempt(
  deps: ActivityDeps,
  name: string,
  policy: FillPolicy,
  onStep: FillRequest['onStep'],
): Promise<FillAttempt> {
  const { info, cancellationSignal: signal } = Context.current();
  if (!info.workflowExecution)
    throw new Failure(
      'InvalidInput',
      `${info.activityType} belongs to a workflow: start \`partition\` or \`backfill\`.`,
    );
  return {
    pipeline: await plannedPipeline(deps, name, policy.fingerprint),
    policy,
    owner: { run: info.workflowExecution.runId, activity: info.activityId },
    attempt: { scheduledAt: info.currentAttemptScheduledTimestampMs, number: info.attempt },
    // A reset begins again at 1, and is scheduled later than the activity was.
    isFirst: info.attempt === 1 && info.currentAttemptScheduledTimestampMs === info.scheduledTimestampMs,
    signal,
    onStep,
  };
}
