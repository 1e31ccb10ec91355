import type { PartitionState } from './inputs.js';

/** One committed fill, as the workflow `partition` returns it. */
export interface PartitionResult {
  readonly pipeline: string;
  readonly key: string;
  /**
   * Rows the partition holds now.
   *
   * @integer
   * @minimum 0
   */
  readonly rows: number;
  /**
   * Rows the fill replaced.
   *
   * @integer
   * @minimum 0
   */
  readonly deleted: number;
  /** @minimum 0 */
  readonly seconds: number;
  /** For example `emptied`: a window that had rows has none now. */
  readonly warnings: readonly string[];
  /** Present where the pipeline has `skipUnchanged` and the new rows equal the old: none was written. */
  readonly unchanged?: true;
  /** Present where `onBusy: skip` met a running fill: nothing was done. */
  readonly skipped?: true;
  /** Present in a backfill's child whose source is not ready: nothing was done, and the backfill tries it again later. */
  readonly notReady?: NotReady;
}

/** What a pipeline's `ready` has said other than yes, or that what it comes after is not filled. */
export interface NotReady {
  /**
   * Milliseconds until it is to be asked again.
   *
   * @integer
   * @minimum 0
   */
  readonly retryAfterMs: number;
  /**
   * Milliseconds up to which that is prolonged, as long again as it has waited. Absent: it is not.
   *
   * @integer
   * @minimum 0
   */
  readonly longestWaitMs?: number;
  /** What stands in the way, in words for people, cut to `MAX_MESSAGE_LENGTH`. Absent: an older worker did not say. */
  readonly reason?: string;
}

/** What the workflow `partitions`, a backfill's child that fills neighbouring partitions one by one, returns. */
export interface PartitionsResult {
  readonly pipeline: string;
  /** One a key, in the order they were given. */
  readonly outcomes: readonly PartitionOutcome[];
}

/** How one of several partitions ended: as a result, or as a failure that the ledger has recorded. */
export type PartitionOutcome = PartitionResult | PartitionFailure;

export interface PartitionFailure {
  readonly key: string;
  readonly type: string;
  /** In results cut at 300 characters. */
  readonly message: string;
}

export interface BackfillCounts {
  /**
   * Partitions of the plan.
   *
   * @integer
   * @minimum 0
   */
  readonly total: number;
  /**
   * @integer
   * @minimum 0
   */
  readonly filled: number;
  /**
   * @integer
   * @minimum 0
   */
  readonly failed: number;
  /**
   * @integer
   * @minimum 0
   */
  readonly skipped: number;
}

/** What `backfill` returns; as the first detail of the failure `BackfillIncomplete` where some failed. */
export interface BackfillResult extends BackfillCounts {
  readonly pipeline: string;
  /** First and last key of the plan, in the calendar's order; absent where nothing was to do. */
  readonly first?: string;
  readonly last?: string;
  /**
   * Rows inserted by all fills of the backfill.
   *
   * @integer
   * @minimum 0
   */
  readonly rows: number;
  /**
   * The first failures, at most 10.
   *
   * @maxItems 10
   */
  readonly failures: readonly PartitionFailure[];
  /** Present where it was stopped with partitions left. */
  readonly stopped?: true;
  /**
   * With `tries`: partitions that were left out since they rest.
   *
   * @integer
   * @minimum 0
   */
  readonly resting?: number;
  /**
   * Of a heal that a schedule has started: partitions that were not ready and are left to the next heal. They count as skipped.
   *
   * @integer
   * @minimum 0
   */
  readonly leftNotReady?: number;
  /** With `downstream`: how the backfills of the pipelines that depend on it have ended, in their order. With `dryRun`: what they would fill. */
  readonly downstream?: readonly DownstreamResult[];
  /** Said to people: partitions left out since they are unfinished, in the future or before `start`. */
  readonly notes: readonly string[];
  /** With `dryRun`: the plan's id, which `plan` takes. */
  readonly plan?: string;
  /** With `dryRun`: partitions that would be filled, by why. */
  readonly counts?: Readonly<Record<PartitionState, number>>;
  /**
   * With `dryRun`: the first 100 keys that would be filled, in the order asked for.
   *
   * @maxItems 100
   */
  readonly keys?: readonly string[];
}

/** What was filled of a pipeline that depends on the backfill's. */
export interface DownstreamResult extends BackfillCounts {
  readonly pipeline: string;
  /** First and last key in the calendar's order; absent where none of its finished partitions overlaps. */
  readonly first?: string;
  readonly last?: string;
  /** Workflow id of its backfill; absent in a dry run, and where nothing was begun. */
  readonly id?: string;
  /**
   * Why its backfill did not end whole, or why none could be begun since no worker serves it, cut to `MAX_MESSAGE_LENGTH`; absent
   * where it did, and where none was begun since another of them did not.
   */
  readonly reason?: string;
}
