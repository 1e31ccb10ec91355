import { windowOf } from '../calendar/window.js';
import { DEFAULTS, type NotReady, shortened } from '../contract.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { fill } from '../warehouse/fill.js';
import type { FillOutcome, FillRequest } from '../warehouse/fill-request.js';
import type { ActivityDeps } from './activity-deps.js';
import type { FillPolicy } from './messages.js';
import { placeOf } from './place.js';

/** What an attempt's fill of one partition is asked, but for the partition. */
export type FillAttempt = Pick<FillRequest, 'owner' | 'attempt' | 'signal' | 'onStep'> & {
  readonly pipeline: Pipeline;
  readonly policy: FillPolicy;
  /** No attempt of this activity was before it. */
  readonly isFirst: boolean;
};

/** What `fill` is asked for one partition of an attempt. */
export function fillRequestOf({ policy, isFirst: _first, ...attempt }: FillAttempt, key: string): FillRequest {
  const { timeoutMs, ledger, onBusy, backfill, startedBy } = policy;
  const window = windowOf(attempt.pipeline.partition, key);
  return { ...attempt, window, timeLeftMs: timeoutMs, ledger, onBusy, backfill, startedBy };
}

/** Why nothing was done about a partition. */
export type LeftAlone = { readonly notReady: NotReady } | { readonly skipped: true };

/**
 * Fills one partition by its whole protocol, or leaves it alone as the policy says: its source is not ready, or something else
 * holds its window. Its claim stands then, and is to be released. Throws what `fill` throws; a source that is not ready once
 * its time is up is a final failure.
 */
export async function fillKey(deps: ActivityDeps, attempt: FillAttempt, key: string): Promise<FillOutcome | LeftAlone> {
  const { pipeline, policy } = attempt;
  const request = fillRequestOf(attempt, key);
  try {
    return await deps.withDatabase(pipeline, (database) =>
      deps.withSource(placeOf(pipeline), (source) => fill(database, { ...request, source })),
    );
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.type === 'Busy' && policy.onBusy === 'skip') return { skipped: true };
    if (error.type !== 'SourceNotReady' || error.final || !policy.notReady) throw error;
    if (policy.notReady === 'yield') {
      const { retryAfterMs = DEFAULTS.readyRetryMs, longestWaitMs } = error.options;
      return { notReady: { retryAfterMs, longestWaitMs, reason: shortened(error.message) } };
    }
    const message = `${error.message} It was given up, as giveUpAfter says. Start it again once the source is there.`;
    throw new Failure(error.type, message, { ...error.options, final: true });
  }
}
