import type { BackfillInput } from './inputs.js';
import type { Pause } from './progress.js';
import type { BackfillCounts, PartitionFailure } from './results.js';

/**
 * What somebody is told of: a partition that was started alone has failed for good, or of a backfill the first one; a backfill
 * with `tries` has tried partitions for the last time; a backfill has paused itself; a backfill has ended; nothing has happened,
 * and somebody tries the hook.
 */
export const NOTICE_EVENTS = ['partition-failed', 'heal-gave-up', 'backfill-paused', 'backfill-ended', 'test'] as const;
export type NoticeEvent = (typeof NOTICE_EVENTS)[number];

/** How a backfill has ended. `stopped`: by its lever or `onFailure`, with partitions left and none failed. */
export type BackfillOutcome = 'done' | 'incomplete' | 'stopped' | 'cancelled' | 'failed';

/** The document that the notify hook gets, once an event. */
export interface Notice {
  /** The event's own, the same each time it is delivered: whoever has seen it drops a second one. */
  readonly id: string;
  readonly event: NoticeEvent;
  /**
   * ISO instant at which it happened.
   *
   * @format date-time
   */
  readonly at: string;
  /** Temporal's, in which the run is. */
  readonly namespace: string;
  /** Its name; of `test`: `test`. */
  readonly pipeline: string;
  /** Of `partition-failed`: the partition's. */
  readonly key?: string;
  /** Of `partition-failed`, where the partition holds rows: the fill that stands. */
  readonly holds?: StandingFill;
  /** The backfill that it is about, or that the partition is part of. */
  readonly backfill?: NoticeBackfill;
  /** The run of a partition that was started alone. */
  readonly partition?: NoticeRun;
  /** Of `backfill-ended`. */
  readonly outcome?: BackfillOutcome;
  /** Of a backfill that has begun, when it happened. */
  readonly counts?: NoticeCounts;
  /** Of `backfill-paused`. */
  readonly paused?: Pause;
  /** Of `backfill-ended`, where it has stopped by itself, could not go on, or is filled and something downstream is not: why. */
  readonly reason?: string;
  /**
   * The first that have failed, at most 10.
   *
   * @maxItems 10
   */
  readonly failures?: readonly PartitionFailure[];
  /** Of `heal-gave-up`. */
  readonly resting?: NoticeResting;
  /**
   * True where the ledger did not answer when this was told: `holds` and what `backfill` says of its start are then not known
   * rather than none.
   */
  readonly ledgerAway?: boolean;
}

/** What a partition holds since its last committed fill. */
export interface StandingFill {
  /**
   * @integer
   * @minimum 0
   */
  readonly rows: number;
  /**
   * ISO instant.
   *
   * @format date-time
   */
  readonly filledAt: string;
}

/** A run of Temporal's. */
export interface NoticeRun {
  /** Workflow id. */
  readonly id: string;
  /** Run id; of a backfill that has continued as new the first one, as the ledger has it. */
  readonly run: string;
  /** Who started it, as Temporal has it: the client's identity. */
  readonly startedBy?: string;
}

export interface NoticeBackfill extends NoticeRun {
  /** As it was given; of `keys` the first 100. Absent where the ledger has the backfill no more. */
  readonly input?: BackfillInput;
}

export interface NoticeCounts extends BackfillCounts {
  /**
   * Rows inserted so far.
   *
   * @integer
   * @minimum 0
   */
  readonly rows: number;
}

/** Partitions that this backfill has tried for the last time: they rest, and healing tries them no more. */
export interface NoticeResting {
  /**
   * @integer
   * @minimum 1
   */
  readonly count: number;
  /**
   * The first, at most 10.
   *
   * @maxItems 10
   */
  readonly first: readonly NoticeRestingPartition[];
}

export interface NoticeRestingPartition extends PartitionFailure {
  /**
   * Times that it has failed in this way.
   *
   * @integer
   * @minimum 1
   */
  readonly tries: number;
}
