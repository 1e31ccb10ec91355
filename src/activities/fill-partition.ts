import type { PartitionResult } from '../contract.js';
import { releaseClaims } from '../warehouse/claim.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import { fillAttempt } from './fill-attempt.js';
import { fillKey } from './fill-key.js';
import type { FillPartitionRequest } from './messages.js';
import { isLeftAlone, partitionEnd } from './partition-result.js';

/**
 * Replaces one partition's rows, or leaves them as they were. A cancel, a time-out and a stopping worker end it only after
 * its transaction is rolled back. A retry finds what an earlier attempt has committed and returns that.
 */
export function fillPartition(deps: ActivityDeps): (request: FillPartitionRequest) => Promise<PartitionResult> {
  return answering('claim', async ({ pipeline: name, key, policy }, note) => {
    const attempt = await fillAttempt(deps, name, policy, (step, rows) => note({ step, rows }));
    const end = await fillKey(deps, attempt, key);
    if (isLeftAlone(end))
      await deps.withDatabase(attempt.pipeline, (database) => releaseClaims(database, [key], attempt));
    return partitionEnd(name, key, end);
  });
}
