import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { unanswered } from './unanswered.js';

/** How a workflow stands, as Temporal's server says it. Throws as {@link unanswered}. */
export async function runState(client: Client, id: string): Promise<'running' | 'ended' | 'not there'> {
  try {
    const { status } = await client.workflow.getHandle(id).describe();
    return status.name === 'RUNNING' ? 'running' : 'ended';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'not there';
    throw unanswered(error, `how ${id} stands`);
  }
}
