import type { Window } from '../calendar/calendar.js';
import type { OnBusy } from '../contract.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';

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
  /** Where the query of a pipeline with a `source` runs. */
  readonly source?: Database;
  readonly window: Window;
  readonly owner: Owner;
  readonly attempt: Attempt;
  /**
   * True where the window was not over when the attempt began: what it fills cannot be whole yet. Known by `fill`.
   */
  readonly unfinished?: boolean;
  /** Milliseconds this attempt may still take, counted from the call. */
  readonly timeLeftMs: number;
  /** The ledger the run was planned against; another one is `WrongLedger`. Absent: any. */
  readonly ledger?: string;
  /** The backfill it is part of, by its run in the ledger. Absent: none. */
  readonly backfill?: string;
  /** Who started the run, as Temporal has it. Absent: not known. */
  readonly startedBy?: string;
  /**
   * What is done where something else holds the window for a few seconds. Absent, and `wait`: a `Conflict`, to be tried again;
   * `skip` and `fail`: `Busy`, which is final.
   */
  readonly onBusy?: OnBusy;
  /** What the rows are read from, looked up before they are read. Known by `fill`. */
  readonly origin?: Origin;
  /** Aborted to cancel: the query is ended on the server and the transaction rolled back before `fill` rejects. */
  readonly signal: AbortSignal;
  /** Told what the fill does now, for heartbeats: `claim`, `ready`, `changed`, `spool`, `lock`, `delete`, `insert`, `check`, `commit`. */
  readonly onStep?: (step: FillStep, rows: number) => void;
}

/** What a partition's rows are read from, so that it is known once that has moved. */
export interface Origin {
  /** What the pipeline's function `changed` says. Absent: it has none; a query is asked in the snapshot that the rows are read in. */
  readonly sourceVersion?: string;
  /** A digest of the fills that the partitions hold which it comes after. Absent: it comes after none. */
  readonly upstream?: string;
}

export const FILL_STEPS = [
  'claim',
  'ready',
  'changed',
  'spool',
  'lock',
  'delete',
  'insert',
  'check',
  'commit',
] as const;
export type FillStep = (typeof FILL_STEPS)[number];

export interface CheckOutcome {
  /** Such as `rows`, `unique(sale_date)`, `not_null(orders)`. */
  readonly check: string;
  readonly passed: boolean;
  /** `warn`: a failed one was let through. Absent: `fail`. */
  readonly severity?: 'warn';
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
  /** True where the pipeline has `skipUnchanged` and the new rows equalled the old: none was written. */
  readonly unchanged?: boolean;
  /** True where this call found that an earlier attempt of the same owner had committed. */
  readonly found: boolean;
}
