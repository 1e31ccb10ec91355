/** The task queue of workflows and fills where `REPAVE_TASK_QUEUE` does not name another. */
export const DEFAULT_TASK_QUEUE = 'repave';

/** The queue of everything that waits, plans or validates, so that it never starves behind fills, nor they behind it. */
export function controlQueue(taskQueue: string): string {
  return `${taskQueue}-control`;
}

/** Registered workflow types. Part of the API: other systems start the first two by these names; the others only these do. */
export const WORKFLOW_TYPES = {
  backfill: 'backfill',
  partition: 'partition',
  partitions: 'partitions',
  notice: 'notice',
} as const;

/** Query of a running backfill, answered with a `Progress`. */
export const PROGRESS_QUERY = 'progress';

/**
 * Search attributes of runs, all of type Keyword, where the namespace has them: the pipeline, the partition's key (of several,
 * `first..last`) and the workflow id of the backfill that a run belongs to.
 */
export const SEARCH_ATTRIBUTES = {
  pipeline: 'RepavePipeline',
  key: 'RepaveKey',
  backfill: 'RepaveBackfill',
} as const;

/** The id of the Temporal Schedule that runs a pipeline. */
export function scheduleId(pipeline: string): string {
  return `repave/${pipeline}`;
}

/** The id of the Temporal Schedule that heals it. No pipeline's name holds a `+`. */
export function healScheduleId(pipeline: string): string {
  return `${scheduleId(pipeline)}+heal`;
}

/** The workflow id that a schedule's runs begin with; Temporal adds `-` and the scheduled time, as {@link scheduledRunId} does. */
export function scheduledWorkflowId(pipeline: string, kind: 'scheduled' | 'heal'): string {
  return `backfill/${pipeline}/${kind}`;
}

/** The workflow id of a schedule's run of one time, such as `backfill/sales_summary/scheduled-2024-03-01T02:15:00Z`. */
export function scheduledRunId(pipeline: string, kind: 'scheduled' | 'heal', at: Date): string {
  return scheduledRunIdOf(`${scheduledWorkflowId(pipeline, kind)}-`, at);
}

/** The workflow id that Temporal gives to any schedule's run of a time, with what all of them begin with. */
export function scheduledRunIdOf(prefix: string, at: Date): string {
  return `${prefix}${at.toISOString().replace(/\.\d+Z$/, 'Z')}`;
}

/** The id of the workflow that tells of an event. */
export function noticeWorkflowId(event: string): string {
  return `notice/${event}`;
}

/** The id of the child workflow that fills one partition; or several, by their name as {@link keysName} gives it. */
export function partitionWorkflowId(pipeline: string, key: string): string {
  return `${pipeline}/${key}`;
}

/** Neighbouring partitions in one name, whatever order they stand in: `<first>..<last>`, or the key where there is one. */
export function keysName(keys: readonly string[]): string {
  // Keys of one granularity sort in the order of time.
  const sorted = [...keys].sort();
  const [first, last] = [sorted[0] ?? '', sorted.at(-1) ?? ''];
  return first === last ? first : `${first}..${last}`;
}
