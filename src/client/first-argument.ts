import type { Client, WorkflowExecutionDescription } from '@temporalio/client';

/**
 * The first argument a run was started with, as its history keeps it. Undefined where there is none, and for a child, which
 * its parent has handed more than an input.
 */
export async function firstArgument(
  client: Client,
  { workflowId, runId }: Pick<WorkflowExecutionDescription, 'workflowId' | 'runId'>,
): Promise<unknown> {
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace: client.options.namespace,
    execution: { workflowId, runId },
    maximumPageSize: 1,
  });
  const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
  const payload = started?.input?.payloads?.[0];
  if (!payload || started.parentWorkflowExecution) return undefined;
  return client.options.loadedDataConverter.payloadConverter.fromPayload(payload);
}
