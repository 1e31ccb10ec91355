import type { Pause } from './progress.js';

/**
 * Updates of a running backfill, by name. Each takes one JSON object, and answers with {@link Steered} once it is in force. All
 * are idempotent: one that arrives twice, under the same update id, is pulled once.
 */
export const LEVERS = ['pause', 'resume', 'setConcurrency', 'stop', 'retryFailed'] as const;
export type Lever = (typeof LEVERS)[number];

/** `pause`: nothing more is started, what runs goes on to its end. Survives any restart. Paused again, the new reason stands. */
export interface PauseInput {
  /**
   * Shown wherever the backfill is, at most 200 characters.
   *
   * @maxLength 200
   */
  readonly reason?: string;
}

/** `setConcurrency`: where fewer than run now, those that run go on to their end. */
export interface SetConcurrencyInput {
  /**
   * 1 to 100.
   *
   * @integer
   * @minimum 1
   * @maximum 100
   */
  readonly concurrency: number;
}

/** `resume`, `stop` and `retryFailed` take an empty object, or nothing. */
export type NoInput = Readonly<Record<string, never>>;

/** What each lever takes. */
export interface LeverInputs {
  readonly pause: PauseInput;
  readonly resume: NoInput;
  readonly setConcurrency: SetConcurrencyInput;
  /** What runs is finished, nothing more is started, and the run ends. */
  readonly stop: NoInput;
  /** The partitions that have failed so far in this backfill are filled again. */
  readonly retryFailed: NoInput;
}

/** How a backfill is set after a lever. */
export interface Steered {
  /**
   * Absent while it plans, unless a lever has set it.
   *
   * @integer
   */
  readonly concurrency?: number;
  /** Absent: it is not paused. */
  readonly paused?: Pause;
  readonly stopping: boolean;
}

/**
 * The signal that pulls a lever where no worker runs, which an update would wait for: it is kept until one does. Takes one
 * {@link Steer}; one that is malformed is passed over, and logged.
 */
export const STEER_SIGNAL = 'steer';

export interface Steer<L extends Lever = Lever> {
  /**
   * Any text of its own, at most 200 characters: the same id is pulled once, as an update or as a signal.
   *
   * @minLength 1
   * @maxLength 200
   */
  readonly id: string;
  readonly lever: L;
  /** What the update of that name takes. */
  readonly input?: LeverInputs[L];
}
