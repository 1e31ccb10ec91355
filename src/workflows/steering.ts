import type { BackfillPlan } from '../activities/messages.js';
import {
  type Lever,
  type LeverInputs,
  MAX_REMEMBERED_LEVERS,
  type Pause,
  type PausedBy,
  type Steered,
} from '../contract.js';
import type { CarriedSetting } from './carried.js';
import type { Pace } from './pace.js';
import type { RetryPass } from './retry-pass.js';
import { WaitingClock } from './waiting-clock.js';

/** One pull of a lever, judged to be well formed. */
export type Pull = { readonly [L in Lever]: { readonly lever: L; readonly input: LeverInputs[L] } }[Lever];

/** How a backfill is set, by its plan, by levers and by itself. The same pull, told twice, is one. */
export class Steering {
  /** How long partitions have waited is told by this. */
  readonly clock = new WaitingClock(() => this.#paused);
  readonly #retry: RetryPass;
  readonly #pace: Pace;
  readonly #changed: () => void;
  readonly #pulled: string[];
  #concurrency: number | undefined;
  #plan: BackfillPlan | undefined;
  #paused: Pause | undefined;
  #stopping = false;
  #touched: boolean;
  #stoppedSince: string | undefined;
  #canaryOver: boolean;
  #failedSince: number;

  /** `changed` is called after each change. */
  constructor(carried: CarriedSetting | undefined, retry: RetryPass, pace: Pace, changed: () => void) {
    this.#retry = retry;
    this.#pace = pace;
    this.#changed = () => {
      this.#touched = true;
      changed();
    };
    this.#touched = carried !== undefined;
    this.#pulled = [...(carried?.pulled ?? [])];
    this.#concurrency = carried?.concurrency;
    this.#paused = carried?.paused;
    this.#canaryOver = carried?.canaryOver ?? false;
    this.#failedSince = carried?.failedSince ?? 0;
  }

  /** Takes what the plan says where no lever has said otherwise. */
  follow(plan: BackfillPlan): void {
    this.#plan = plan;
  }

  /** Whether anything has changed since it was planned. */
  get touched(): boolean {
    return this.#touched;
  }

  /** Partitions at once; undefined while neither a plan nor a lever says it. */
  get concurrency(): number | undefined {
    return this.#concurrency ?? this.#plan?.concurrency;
  }

  get paused(): Pause | undefined {
    return this.#paused;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** Why the backfill stops by itself. */
  get stoppedSince(): string | undefined {
    return this.#stoppedSince;
  }

  /** Partitions that may be taken as long as the first ones, the `canary`, are to be filled alone; else undefined. */
  get canary(): number | undefined {
    return this.#canaryOver ? undefined : this.#plan?.canary;
  }

  /** Partitions that have failed since the start, or since the backfill was resumed. */
  get failedSince(): number {
    return this.#failedSince;
  }

  get carried(): CarriedSetting {
    return {
      concurrency: this.#concurrency,
      paused: this.#paused,
      canaryOver: this.#canaryOver || undefined,
      failedSince: this.#failedSince || undefined,
      pulled: this.#pulled.length > 0 ? this.#pulled : undefined,
    };
  }

  steered(): Steered {
    return {
      concurrency: this.concurrency,
      ...(this.#paused ? { paused: this.#paused } : {}),
      stopping: this.#stopping,
    };
  }

  /** Does what a lever says, unless a pull of this id was done before. */
  pull(id: string, pull: Pull): Steered {
    if (!this.#pulled.includes(id)) {
      this.#pulled.push(id);
      this.#pulled.splice(0, this.#pulled.length - MAX_REMEMBERED_LEVERS);
      if (this.#do(pull)) this.#changed();
    }
    return this.steered();
  }

  /** Pauses by itself: where it is paused already, for the newer reason. */
  pauseItself(by: PausedBy, reason: string): void {
    if (this.#stopping) return;
    this.#pause(by, reason);
    this.#changed();
  }

  stopItself(why: string): void {
    if (!this.#stop()) return;
    this.#stoppedSince = why;
    this.#changed();
  }

  countFailure(): void {
    this.#failedSince += 1;
  }

  passCanary(): void {
    this.#canaryOver = true;
  }

  /** Whether it changed anything. */
  #do(pull: Pull): boolean {
    switch (pull.lever) {
      case 'pause':
        if (this.#stopping) return false;
        this.#pause('lever', pull.input.reason);
        return true;
      case 'resume':
        return this.#resume();
      case 'setConcurrency':
        if (pull.input.concurrency === this.concurrency) return false;
        this.#concurrency = pull.input.concurrency;
        return true;
      case 'stop':
        return this.#stop();
      case 'retryFailed':
        if (this.#stopping) return false;
        this.#retry.request();
        return true;
      default:
        return pull satisfies never;
    }
  }

  #pause(by: PausedBy, reason: string | undefined): void {
    const since = this.#paused?.since ?? new Date(Date.now()).toISOString();
    this.#paused = { by, ...(reason === undefined ? {} : { reason }), since };
  }

  #resume(): boolean {
    if (!this.#paused) return false;
    this.#endPause();
    // The pause says nothing about how fast it goes.
    this.#pace.restart();
    // A canary is judged by all of its partitions.
    if (this.canary === undefined) this.#failedSince = 0;
    return true;
  }

  #stop(): boolean {
    if (this.#stopping) return false;
    this.#stopping = true;
    this.#endPause();
    return true;
  }

  #endPause(): void {
    if (this.#paused) this.clock.skip(this.#paused);
    this.#paused = undefined;
  }
}
