import { patched } from '@temporalio/workflow';
import type { Pause } from '../contract.js';

const PATCH = 'pauses-not-counted';

/**
 * The clock by which it is told how long partitions have waited: it stands still while the backfill is paused. Milliseconds
 * since the epoch, less this run's pauses. Deterministic, as Temporal's own time in a workflow is.
 */
export class WaitingClock {
  readonly #paused: () => Pause | undefined;
  /** Milliseconds of the pauses of this run that are over. */
  #pausedMs = 0;

  /** `paused`: the pause that is in force. */
  constructor(paused: () => Pause | undefined) {
    this.#paused = paused;
  }

  now(): number {
    return Date.now() - this.#pausedMs - this.#lasting(this.#paused());
  }

  /** Whether it stands still. */
  get stands(): boolean {
    return this.#paused() !== undefined && patched(PATCH);
  }

  /** To be called when a pause ends. */
  skip(pause: Pause): void {
    this.#pausedMs += this.#lasting(pause);
  }

  /** When this clock shows a time, in milliseconds since the epoch: later by as much as it stands still until then. */
  reaches(time: number): number {
    return Date.now() + (time - this.now());
  }

  /** A time of this clock by that of the run that continues this one. */
  carried(time: number): number {
    return time + this.#pausedMs;
  }

  /** Runs of older versions have counted pauses, and replay so. */
  #lasting(pause: Pause | undefined): number {
    return pause && patched(PATCH) ? Date.now() - Date.parse(pause.since) : 0;
  }
}
