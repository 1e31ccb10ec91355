import type { PartitionOutcome, PartitionsResult } from '../contract.js';
import { Failure } from '../failure.js';
import { releaseClaims } from '../warehouse/claim.js';
import { isRegistered } from '../warehouse/ledger.js';
import { recordOwnFailure } from '../warehouse/record-failure.js';
import { type RunOutcome, runOutcomes } from '../warehouse/run-outcomes.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import { fillAttempt } from './fill-attempt.js';
import { type FillAttempt, fillKey, fillRequestOf } from './fill-key.js';
import type { FillBatchRequest } from './messages.js';
import { partitionEnd, partitionFailure, partitionResult } from './partition-result.js';
import { withPlannedDatabase } from './planned-database.js';

/**
 * Fills several partitions one after the other, each by its whole protocol, with a transaction, a claim, an entry in the
 * ledger and a failure of its own. A final failure of one is recorded and stops none of the others. Where one is to be tried
 * again, the others are filled before this throws its failure; the next attempt leaves alone what the run has filled or
 * failed. A cancel, a time-out and a stopping worker end it only after the open transaction is rolled back.
 */
export function fillBatch(deps: ActivityDeps): (request: FillBatchRequest) => Promise<PartitionsResult> {
  return answering('claim', async ({ pipeline: name, keys, policy }, note) => {
    let current = '';
    const attempt = await fillAttempt(deps, name, policy, (step, rows) => note({ key: current, step, rows }));
    const before = await withPlannedDatabase(deps, attempt.pipeline, policy.ledger, (database) =>
      runOutcomes(database, name, keys, attempt.owner.run),
    );
    const outcomes = new Map<string, PartitionOutcome>();
    const again: Failure[] = [];
    for (const { key, ...earlier } of inOrder(before)) {
      current = key;
      const outcome = settledBefore(name, key, earlier) ?? (await filled(deps, attempt, key));
      if (outcome instanceof Failure) again.push(outcome);
      else outcomes.set(key, outcome);
    }
    if (again.length > 0) throw oneOf(again);
    const ended = keys.flatMap((key) => outcomes.get(key) ?? []);
    const leftAlone = ended.filter((outcome) => 'notReady' in outcome || 'skipped' in outcome).map(({ key }) => key);
    if (leftAlone.length > 0)
      await deps.withDatabase(attempt.pipeline, (database) => releaseClaims(database, leftAlone, attempt));
    return { pipeline: name, outcomes: ended };
  });
}

/**
 * What no attempt has begun yet comes first, then what was begun longest ago: a partition that takes its worker down, or ends
 * every connection, must not keep the others from being filled.
 */
function inOrder(outcomes: readonly RunOutcome[]): RunOutcome[] {
  return [...outcomes].sort((a, b) => (a.claim?.fence ?? 0) - (b.claim?.fence ?? 0));
}

function settledBefore(
  pipeline: string,
  key: string,
  { fill, failure }: Pick<RunOutcome, 'fill' | 'failure'>,
): PartitionOutcome | undefined {
  if (fill) return partitionResult(pipeline, key, fill);
  return failure && partitionFailure(key, failure.type, failure.message);
}

/** How one partition ends; a failure that is to be tried again is returned. */
async function filled(deps: ActivityDeps, attempt: FillAttempt, key: string): Promise<PartitionOutcome | Failure> {
  const { name } = attempt.pipeline;
  try {
    return partitionEnd(name, key, await fillKey(deps, attempt, key));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (!error.final) return error;
    const recorded = await deps.withDatabase(
      attempt.pipeline,
      async (database) =>
        (await isRegistered(database, name)) && (await recordOwnFailure(database, fillRequestOf(attempt, key), error)),
    );
    // A newer attempt is at it, the ledger takes no claims, or the pipeline has another name now: in no case has this one a word to say on the others.
    if (!recorded) throw error;
    return partitionFailure(key, error.type, error.message);
  }
}

/** Of several failures that are to be tried again, the one whose retry comes first. */
function oneOf(failures: readonly Failure[]): Failure {
  const [first, ...others] = failures;
  if (!first) throw new Error('There is no failure to choose from');
  return others.reduce((a, b) => ((b.options.retryAfterMs ?? 0) < (a.options.retryAfterMs ?? 0) ? b : a), first);
}
