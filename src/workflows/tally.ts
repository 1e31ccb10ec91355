import {
  MAX_LISTED_FAILURES,
  type BackfillResult,
  type NotReady,
  type PartitionFailure,
  type Progress,
  shortened,
  type WaitingPartition,
} from '../contract.js';
import type { CarriedBackfill, LeftNotReady } from './carried.js';
import { Pace } from './pace.js';

/** How a partition's child ended, as far as its backfill is concerned. */
export type ChildOutcome =
  | { readonly kind: 'filled'; readonly rows: number }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'failed'; readonly type: string; readonly message: string }
  /** Nothing was done: it is to be tried again after the delay. */
  | ({ readonly kind: 'not ready' } & NotReady)
  /** Nothing was done, since it was not ready: it is left to the next heal. */
  | { readonly kind: 'left'; readonly reason?: string }
  /** Nothing was done: it is to be tried again once the other run, by its workflow id, has ended. */
  | { readonly kind: 'busy'; readonly id: string }
  /** Ended after the backfill's own cancel: counts for nothing. */
  | { readonly kind: 'cancelled' };

/** What a backfill has done, over all of its runs. */
export class Tally {
  filled = 0;
  failed = 0;
  skipped = 0;
  rows = 0;
  readonly failures: PartitionFailure[] = [];
  /** Partitions, among those that are skipped, that were not ready and are left to the next heal. */
  leftNotReady: LeftNotReady | undefined;
  /** Children that run, by their partitions' name, and since when. */
  readonly running = new Map<string, number>();
  /** Partitions behind the others, since their sources were not ready. */
  waiting = 0;
  /** Key of the first of them. */
  firstWaiting: string | undefined;
  /** Partitions behind the others, since other runs fill them. */
  busy = 0;
  /** Workflow id of the backfill that runs now of what depends on this one. */
  downstream: string | undefined;
  phase: Exclude<Progress['phase'], 'paused' | 'stopping'> = 'planning';
  readonly pace: Pace;
  /** Of partitions that were not ready when they were last tried what stood in the way. */
  readonly #reasons = new Map<string, string>();

  constructor(carried?: CarriedBackfill) {
    this.pace = new Pace(carried?.pace);
    if (!carried) return;
    this.filled = carried.filled;
    this.failed = carried.failed;
    this.skipped = carried.skipped;
    this.rows = carried.rows;
    this.leftNotReady = carried.leftNotReady;
    this.failures.push(...carried.failures);
  }

  add(key: string, outcome: ChildOutcome): void {
    if (outcome.kind === 'not ready' && outcome.reason !== undefined) this.#reasons.set(key, outcome.reason);
    else this.#reasons.delete(key);
    switch (outcome.kind) {
      case 'filled':
        this.filled += 1;
        this.rows += outcome.rows;
        this.pace.ended();
        return;
      case 'skipped':
        this.skipped += 1;
        return;
      case 'left':
        this.skipped += 1;
        this.#leave(key, outcome.reason);
        return;
      case 'failed':
        this.failed += 1;
        this.pace.ended();
        if (this.failures.length < MAX_LISTED_FAILURES) {
          this.failures.push({ key, type: outcome.type, message: shortened(outcome.message) });
        }
        return;
      case 'not ready':
      case 'busy':
      case 'cancelled':
        return;
      default:
        outcome satisfies never;
    }
  }

  #leave(key: string, reason: string | undefined): void {
    const { count, keys, ...first } = this.leftNotReady ?? { count: 0, keys: [], reason };
    this.leftNotReady = { ...first, count: count + 1, keys: [...keys, key].slice(0, MAX_LISTED_FAILURES) };
  }

  /** A partition that has failed is filled again: until it fails again, it has not failed. */
  takeAgain(key: string): void {
    this.failed = Math.max(0, this.failed - 1);
    const listed = this.failures.findIndex((failure) => failure.key === key);
    if (listed >= 0) this.failures.splice(listed, 1);
  }

  /** The first partition that waits since it was not ready. */
  get notReady(): WaitingPartition | undefined {
    const key = this.firstWaiting;
    if (key === undefined) return undefined;
    const reason = this.#reasons.get(key);
    return { key, ...(reason === undefined ? {} : { reason }) };
  }

  /** Partitions of so many that have not had their last try. */
  left(total: number): number {
    return total - this.filled - this.failed - this.skipped;
  }

  counts(): Pick<BackfillResult, 'filled' | 'failed' | 'skipped' | 'rows'> {
    return { filled: this.filled, failed: this.failed, skipped: this.skipped, rows: this.rows };
  }
}
