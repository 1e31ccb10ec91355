/**
 * What a backfill hands on to its next run: the JSON of a history, in which no list grows. Types alone. The next run may be an
 * older or a newer worker's, so fields may be added, never renamed or given another meaning.
 */
import type { BackfillPlan, Cursor } from '../activities/messages.js';
import type { DownstreamResult, PartitionFailure, Pause } from '../contract.js';

/** Partitions whose sources were not ready, that are tried again together. */
export interface WaitingKeys {
  readonly keys: readonly string[];
  /** Milliseconds since the epoch: when they were first tried; later by the pauses since, which do not count. */
  readonly since: number;
  /** When they are to be tried again. */
  readonly due: number;
  /** They have failed before, and are filled again as `retryFailed` says. */
  readonly retry?: true;
}

/** Partitions that another run fills, which is waited for; then they are tried again together. */
export interface BusyKeys extends Omit<WaitingKeys, 'due'> {
  /** Workflow id of the other run. */
  readonly id: string;
}

/** Partitions that were not ready, and are left to the next heal. */
export interface LeftNotReady {
  readonly count: number;
  /** The first of them, at most the contract's limit of listed failures. */
  readonly keys: readonly string[];
  /** What stood in the way of the first, where that is known. */
  readonly reason?: string;
}

/** How far the failed partitions are filled again. */
export interface CarriedRetry {
  /** The last key that was taken again. Absent: none yet. */
  readonly after?: string;
  /** Another pass is to follow this one. */
  readonly another?: true;
}

/** When the most recent partitions ended. */
export interface CarriedPace {
  /** Milliseconds since the epoch: when the time they took began. */
  readonly from: number;
  /** Milliseconds after it, in order. */
  readonly ends: readonly number[];
  /** Partitions that ended at each. Absent: one. */
  readonly counts?: readonly number[];
}

/** How a backfill is set, where that is not as its plan says. */
export interface CarriedSetting {
  readonly concurrency?: number;
  readonly paused?: Pause;
  /** Its first partitions, the `canary`, are filled, or passed over. */
  readonly canaryOver?: true;
  /** Partitions that have failed since the start, or since it was resumed. */
  readonly failedSince?: number;
  /** Ids of the last levers, at most the contract's limit. */
  readonly pulled?: readonly string[];
  /** What was told of. */
  readonly told?: CarriedTold;
  /** The ledger was not told yet. */
  readonly untold?: true;
  /** When the ledger had it ended, which it was not told yet was no end. */
  readonly wentOnAfter?: string;
}

/** What a backfill has told of so far. */
export interface CarriedTold {
  /** That a partition has failed. */
  readonly failed?: true;
  /** How often that it has paused itself. */
  readonly paused?: number;
  /** How often that it has ended, where it then went on. */
  readonly ended?: number;
}

/** What a backfill carries into its next run: never a list that grows. */
export interface CarriedBackfill {
  readonly plan: BackfillPlan;
  readonly cursor: Cursor;
  readonly filled: number;
  readonly failed: number;
  readonly skipped: number;
  readonly rows: number;
  readonly failures: readonly PartitionFailure[];
  /** With those that are busy, at most the contract's limit of waiting partitions. Absent: none. */
  readonly waiting?: readonly WaitingKeys[];
  readonly busy?: readonly BusyKeys[];
  readonly retry?: CarriedRetry;
  /** Absent: none. */
  readonly leftNotReady?: LeftNotReady;
  readonly pace?: CarriedPace;
  readonly setting?: CarriedSetting;
  /** Present where what depends on it was filled before a lever made work again. */
  readonly downstream?: CarriedDownstream;
}

/** How the backfills of what depends on a backfill's pipeline have ended. */
export interface CarriedDownstream {
  /** In their order, also those that were not begun. */
  readonly results: readonly DownstreamResult[];
  /** Said to people: what was left out, and why. */
  readonly notes: readonly string[];
  /** Pipelines that are not filled as planned, the first of them for a reason of its own. */
  readonly wanting: readonly string[];
  /** A lever has ended it with some not begun. */
  readonly stopped: boolean;
}

/** The second argument of `backfill`: what continue-as-new hands on. */
export interface Continuation {
  /** Partitions after which a run continues as new, where the history's length does not ask for it before. */
  readonly partitionsPerRun?: number;
  /** Absent in a first run. */
  readonly carried?: CarriedBackfill;
}
