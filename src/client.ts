/**
 * For other systems: plans, starts, follows, steers and cancels runs on a Temporal server that Repave's workers poll. Brings in neither a
 * database driver nor a worker.
 */
export { connectRepave, RepaveClient, type ConnectOptions } from './client/repave-client.js';
export { BackfillHandle, NoAnswer, type Abortable } from './client/backfill-handle.js';
export type { Attempt } from './client/attempts.js';
export { PartitionHandle } from './client/partition-handle.js';
export { BackfillFailed, RunFailed, type EndedAs } from './client/run-failed.js';
export { backfillWorkflowId } from './client/backfill-id.js';
export type { PipelineSchedules } from './client/pipeline-schedules.js';
export type { LeftAlone, ScheduleChange, ScheduleComparison } from './client/schedule-changes.js';
export type { FieldChange, KeptSchedule } from './client/schedule-facts.js';
export type { Keeper, ScheduleRequest } from './client/schedule-request.js';
export type { ScheduledRun, SeenSchedule } from './client/seen-schedule.js';
export type { Pollers } from './client/pollers.js';
export type { Pulled } from './client/pull-lever.js';
export { Failure } from './failure.js';
export { ServerUnreachable } from './temporal/server-unreachable.js';
