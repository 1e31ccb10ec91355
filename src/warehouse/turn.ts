import { setImmediate as nextTurn } from 'node:timers/promises';

/** Milliseconds for which one fill works in one turn of the event loop: heartbeats, cancels and other fills have theirs. */
const LONGEST_MS = 50;
/** Milliseconds between two looks at the clock, about: a look costs as much as a row. */
const BETWEEN_LOOKS_MS = 1;
const MOST_STEPS = 256;

/** A share of the event loop, for work in many small steps that need never wait for anything. */
export class Turn {
  #began = performance.now();
  #looked = this.#began;
  #steps = 0;
  /** Steps between two looks at the clock: more, the quicker the last ones were. */
  #skip = 1;

  /** Whether the share is used up. To be asked after each step. */
  isOver(): boolean {
    this.#steps += 1;
    if (this.#steps < this.#skip) return false;
    this.#steps = 0;
    const now = performance.now();
    this.#skip = now - this.#looked < BETWEEN_LOOKS_MS ? Math.min(2 * this.#skip, MOST_STEPS) : 1;
    this.#looked = now;
    return now - this.#began >= LONGEST_MS;
  }

  /** Lets the others have theirs, and begins another. */
  async next(): Promise<void> {
    await nextTurn();
    this.#began = performance.now();
  }
}
