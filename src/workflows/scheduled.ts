import { defineSearchAttributeKey } from '@temporalio/common';
import { workflowInfo } from '@temporalio/workflow';

const SCHEDULED_START = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');
const SCHEDULED_BY = defineSearchAttributeKey('TemporalScheduledById', 'KEYWORD');

/** What Temporal says of a run that one of its schedules has started: the time it was due, however late it is, and the schedule's id. */
export function scheduled(): { readonly at?: Date; readonly by?: string } {
  const { typedSearchAttributes } = workflowInfo();
  return { at: typedSearchAttributes.get(SCHEDULED_START), by: typedSearchAttributes.get(SCHEDULED_BY) };
}
