import type { Window } from '../calendar/calendar.js';
import type { Pipeline } from '../pipeline/pipeline.js';

/** Who fills: one activity of one workflow run. Temporal decides which run may go on; the fence orders its attempts. */
export interface Owner {
  /** Workflow run id (a UUID). */
  readonly run: string;
  /** Activity id within the run. */
  readonly activity: string;
}

/**
 * An attempt's place among its owner's attempts: compared by `scheduledAt`, then by `number`. Never by the number alone,
 * since `temporal activity reset` begins again at 1.
 */
export interface Attempt {
  /** Milliseconds since the epoch, by Temporal's server: when this attempt was scheduled. */
  readonly scheduledAt: number;
  readonly number: number;
}

export interface FillRequest {
  readonly pipeline: Pipeline;
  readonly window: Window;
  readonly owner: Owner;
  readonly attempt: Attempt;
  /** Milliseconds this attempt may still take, counted from the call. */
  readonly timeLeftMs: number;
  /** The ledger the run was planned against; another one is `WrongLedger`. Absent: any. */
  readonly ledger?: string;
  /** Aborted to cancel: the query is ended on the server and the transaction rolled back before `fill` rejects. */
  readonly signal: AbortSignal;
  /** Told what the fill does now, for heartbeats: `claim`, `spool`, `lock`, `delete`, `insert`, `check`, `commit`. */
  readonly onStep?: (step: FillStep, rows: number) => void;
}

export const FILL_STEPS = ['claim', 'spool', 'lock', 'delete', 'insert', 'check', 'commit'] as const;
export type FillStep = (typeof FILL_STEPS)[number];

export interface CheckOutcome {
  /** Such as `rows`, `unique(sale_date)`, `not_null(orders)`. */
  readonly check: string;
  readonly passed: boolean;
  /** What was seen, in counts: never a row's value. */
  readonly seen: string;
}

/** One committed fill, as its row of `repave.fill` says. */
export interface FillOutcome {
  readonly fence: number;
  readonly rows: number;
  readonly deleted: number;
  readonly seconds: number;
  readonly warnings: readonly string[];
  /** True where this call found that an earlier attempt of the same owner had committed. */
  readonly found: boolean;
}
