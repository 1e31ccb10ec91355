import type { FillStep } from './fill-request.js';

/** How long one step of a fill took. */
export interface StepTime {
  readonly step: FillStep;
  readonly seconds: number;
}

/** A clock for a fill's `onStep`: adds up how long each step takes, in the order in which they first came. */
export class StepTimes {
  readonly #seconds = new Map<FillStep, number>();
  #current: FillStep | undefined;
  #since = 0;

  /** The step that begins now, or goes on. */
  enter(step: FillStep): void {
    this.#stop();
    this.#current = step;
    this.#since = performance.now();
  }

  /** Ends the step that runs and gives them all. */
  end(): StepTime[] {
    this.#stop();
    this.#current = undefined;
    return [...this.#seconds].map(([step, seconds]) => ({ step, seconds }));
  }

  #stop(): void {
    if (this.#current === undefined) return;
    const spent = (performance.now() - this.#since) / 1000;
    this.#seconds.set(this.#current, (this.#seconds.get(this.#current) ?? 0) + spent);
  }
}
