import type { BackfillPlan } from '../activities/messages.js';
import type { Notices } from './notices.js';
import type { RetryPass } from './retry-pass.js';
import type { Steering } from './steering.js';
import type { Tally } from './tally.js';

/** What the lanes of a run share with the rest of its backfill. */
export interface Shared {
  readonly plan: BackfillPlan;
  readonly tally: Tally;
  readonly steering: Steering;
  readonly retry: RetryPass;
  readonly notices: Notices;
  /** Says to those who look what has changed. */
  readonly show: () => void;
}
