import type { Client, WorkflowExecutionDescription } from '@temporalio/client';

/** Milliseconds the server may take to say how a run stands. */
const DESCRIBE_MS = 10_000;

/** How a run stands: the id's newest where none is named. Throws Temporal's `WorkflowNotFoundError` where it knows none. */
export async function describeRun(client: Client, id: string, runId?: string): Promise<WorkflowExecutionDescription> {
  return client.withDeadline(Date.now() + DESCRIBE_MS, () => client.workflow.getHandle(id, runId).describe());
}

/** The first run of the chain of continue-as-new that a run belongs to. */
export function firstRunIn({ raw, runId }: WorkflowExecutionDescription): string {
  // A server before 1.24 does not say it.
  return raw.workflowExecutionInfo?.firstRunId || runId;
}
