/** Everything a worker registers: each export is a workflow type. */
import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import { WORKFLOW_TYPES } from '../contract.js';
import * as exported from './index.js';

export { backfill } from './backfill.js';
export { notice } from './notice.js';
export { partition } from './partition.js';
export { partitions } from './partitions.js';

/** Runs for every type that is not exported here, and fails at once: otherwise the first task would be retried for ever. */
export default async function unknownType(): Promise<never> {
  const known = [WORKFLOW_TYPES.backfill, WORKFLOW_TYPES.partition].join(', ');
  throw ApplicationFailure.nonRetryable(
    `The workflow type ${JSON.stringify(workflowInfo().workflowType)} is not known: expected one of ${known}.`,
    'InvalidInput',
  );
}

// The SDK looks a type up as a property of this module, which in a bundle is an object that inherits `constructor` and the like.
Object.setPrototypeOf(exported, null);
