import type { BackfillCounts, PartitionFailure } from './results.js';

/** A child of a backfill that runs now. */
export interface RunningChild {
  /** Its partition's key; of partitions that one child fills, the first and the last: `2024-01-01..2024-01-07`. */
  readonly keys: string;
  /**
   * ISO instant at which it was started.
   *
   * @format date-time
   */
  readonly since: string;
}

/** Who paused a backfill: a person, by the lever; or itself, as `onFailure` or `canary` says. */
export const PAUSED_BY = ['lever', 'failures', 'canary'] as const;
export type PausedBy = (typeof PAUSED_BY)[number];

/** Why a backfill starts nothing. */
export interface Pause {
  readonly by: PausedBy;
  /** A person's own words, or what has failed. Absent: none were given. */
  readonly reason?: string;
  /**
   * ISO instant.
   *
   * @format date-time
   */
  readonly since: string;
}

/** A partition that waits behind the others, since its source was not ready. */
export interface WaitingPartition {
  readonly key: string;
  /** What stands in the way, in words for people. Absent: it was not tried yet since the run went on as a new one. */
  readonly reason?: string;
}

/** The answer to the query `progress`. */
export interface Progress extends BackfillCounts {
  readonly pipeline: string;
  readonly first?: string;
  readonly last?: string;
  /**
   * @integer
   * @minimum 0
   */
  readonly rows: number;
  readonly running: readonly RunningChild[];
  /**
   * Partitions that wait behind the others, since their sources were not ready. Absent: none.
   *
   * @integer
   * @minimum 0
   */
  readonly waiting?: number;
  /** The first of these, by its key. Absent: none wait. */
  readonly notReady?: WaitingPartition;
  /**
   * Partitions that wait behind the others, since other runs fill them. Absent: none.
   *
   * @integer
   * @minimum 0
   */
  readonly busy?: number;
  /** With `downstream`, once its own partitions are filled: workflow id of the backfill of what depends on them that runs now. */
  readonly downstream?: string;
  readonly failures: readonly PartitionFailure[];
  /** `draining`: what runs is finished, before the run goes on as a new one. `stopping`: before it ends. */
  readonly phase: 'planning' | 'filling' | 'paused' | 'stopping' | 'draining' | 'ended';
  /**
   * Partitions (with a batch: children) at once, as set now. Absent while it plans.
   *
   * @integer
   * @minimum 0
   */
  readonly concurrency?: number;
  /** Present while it is paused; what runs goes on to its end. */
  readonly paused?: Pause;
  /**
   * Partitions a minute, by the most recent ones. Absent: not yet known.
   *
   * @minimum 0
   */
  readonly perMinute?: number;
  /**
   * Seconds until it is through, by that rate. Absent: not yet known, or nothing moves.
   *
   * @minimum 0
   */
  readonly secondsLeft?: number;
}
