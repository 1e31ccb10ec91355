import type { Pipeline } from '../pipeline/pipeline.js';
import type { FillPolicy } from './messages.js';
import { placeOf } from './place.js';

/** What every fill of a run is bound to, whoever started it. */
export function fillPolicy(pipeline: Pipeline, ledger: string): FillPolicy {
  return {
    ledger,
    ...placeOf(pipeline),
    fingerprint: pipeline.fingerprint,
    timeoutMs: pipeline.timeoutMs,
    giveUpAfterMs: pipeline.retry.giveUpAfterMs,
  };
}
