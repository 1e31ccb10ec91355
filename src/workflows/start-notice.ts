import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { CancellationScope, log, ParentClosePolicy, startChild, WorkflowIdReusePolicy } from '@temporalio/workflow';
import type { NoticeRequest } from '../activities/messages.js';
import { noticeWorkflowId, WORKFLOW_TYPES } from '../contract.js';
import type { notice } from './notice.js';

/**
 * Starts the workflow that tells of an event, and returns once it is there; of an event that was begun to be told there is
 * nothing to do. Also where this run is cancelled. Never throws: whoever has something to tell goes on as if nobody listened.
 */
export async function startNotice(request: NoticeRequest): Promise<void> {
  try {
    await CancellationScope.nonCancellable(() =>
      startChild<typeof notice>(WORKFLOW_TYPES.notice, {
        workflowId: noticeWorkflowId(request.id),
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
        parentClosePolicy: ParentClosePolicy.ABANDON,
        staticSummary: `${request.pipeline} ${request.event}`,
        args: [request],
      }),
    );
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return;
    log.error('The workflow that tells of an event could not be started', {
      id: request.id,
      failure: error instanceof Error ? error.message : undefined,
    });
  }
}
