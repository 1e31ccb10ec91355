import type { Client, WorkflowHandle } from '@temporalio/client';

/** Which run of a workflow id: the one started or joined, whatever starts under the id after it. */
export interface RunName {
  readonly id: string;
  /** Absent: the id's newest run. */
  readonly runId?: string;
  /** The first run of its chain of continue-as-new; keeps a cancel from reaching a later chain. */
  readonly firstRunId?: string;
  /** True where the run was there already, and false where this call started it. */
  readonly joined: boolean;
}

/** A handle that waits for the chain the run belongs to. */
export function resultHandle(client: Client, { id, runId }: RunName): WorkflowHandle {
  return client.workflow.getHandle(id, runId);
}

/** A handle that asks and cancels the chain's current run, whichever that is by then. */
export function currentHandle(client: Client, { id, firstRunId }: RunName): WorkflowHandle {
  return client.workflow.getHandle(id, undefined, { firstExecutionRunId: firstRunId });
}
