import type { Attempt } from '../client.js';
import type { Progress } from '../contract.js';

/** A backfill as it is seen at one time. */
export interface Sight {
  readonly progress: Progress;
  /** Its workflow id, for the commands that are named. Absent: none is named. */
  readonly id?: string;
  /** Of the backfill and its children, as far as they were asked. */
  readonly attempts?: readonly Attempt[];
  /** Present where the figures are the ledger's, and what runs is Temporal's word. */
  readonly unanswered?: 'no worker polls' | 'no worker answers';
}

/** Why an attempt is to be tried again; undefined where it runs, or only waits for a worker. */
export function waitsFor({ state, failure }: Attempt): string | undefined {
  return state === 'waiting' && failure ? `${failure.type}: ${failure.message}` : undefined;
}
