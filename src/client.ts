/**
 * For other systems: starts, follows and cancels runs on a Temporal server that Repave's workers poll. Brings in neither a
 * database driver nor a worker.
 */
export { connectRepave, RepaveClient, type ConnectOptions } from './client/repave-client.js';
export { BackfillHandle, NoAnswer } from './client/backfill-handle.js';
export { PartitionHandle } from './client/partition-handle.js';
export { BackfillFailed, RunFailed, type EndedAs } from './client/run-failed.js';
export { backfillWorkflowId } from './client/backfill-id.js';
export type { Pollers } from './client/pollers.js';
export { Failure } from './failure.js';
export { ServerUnreachable } from './temporal/server-unreachable.js';
