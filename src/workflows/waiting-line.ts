import { condition } from '@temporalio/workflow';
import { MAX_WAITING } from '../contract.js';
import type { WaitingKeys } from './carried.js';

/** Partitions whose sources were not ready, behind all others: each group comes again once its time has come. */
export class WaitingLine {
  readonly #waiting: Set<WaitingKeys>;
  /** Those that a lane waits for. */
  readonly #held = new Set<WaitingKeys>();
  /** Keys that are tried, and may come into the line. */
  #reserved = 0;
  readonly #elsewhere: () => number;
  readonly #max: number;

  /** `elsewhere`: keys that wait for something else, and share the room; `max`: for how many keys there is room. */
  constructor(waiting: readonly WaitingKeys[] = [], elsewhere: () => number = () => 0, max: number = MAX_WAITING) {
    this.#waiting = new Set(waiting);
    this.#elsewhere = elsewhere;
    this.#max = max;
  }

  /** Keys in the line. */
  get size(): number {
    return [...this.#waiting].reduce((sum, { keys }) => sum + keys.length, 0);
  }

  /** The first key in the line, in the calendar's order. */
  get first(): string | undefined {
    let first: string | undefined;
    for (const { keys } of this.#waiting) for (const key of keys) if (first === undefined || key < first) first = key;
    return first;
  }

  /** Whether a lane should wait for what is in the line before it takes a key that was not tried yet. */
  get full(): boolean {
    return this.#taken >= this.#max && this.hasFree;
  }

  /** Whether there is a group that no lane waits for. */
  get hasFree(): boolean {
    return this.#waiting.size > this.#held.size;
  }

  /** Whether keys that are tried now may come into the line. */
  get hasReserved(): boolean {
    return this.#reserved > 0;
  }

  has(key: string): boolean {
    return [...this.#waiting].some(({ keys }) => keys.includes(key));
  }

  /** What waits, to be carried into another run. */
  get groups(): readonly WaitingKeys[] {
    return [...this.#waiting];
  }

  /** Keeps room for keys that are about to be tried; false where there is none: those must not come into the line. */
  reserve(keys: readonly string[]): boolean {
    if (this.#taken + keys.length > this.#max) return false;
    this.#reserved += keys.length;
    return true;
  }

  /** Gives reserved room back, with what of the keys is to wait. */
  settle(keys: readonly string[], waiting: readonly WaitingKeys[]): void {
    this.#reserved -= keys.length;
    for (const group of waiting) this.#waiting.add(group);
  }

  get #taken(): number {
    return this.size + this.#reserved + this.#elsewhere();
  }

  /**
   * Takes the group that is due first out of the line, once its time has come; undefined where no group is free, or `stopped`
   * says so before. Rejects as cancelled.
   */
  async next(stopped: () => boolean): Promise<WaitingKeys | undefined> {
    const free = [...this.#waiting].filter((group) => !this.#held.has(group));
    const [first, ...others] = free;
    if (!first) return undefined;
    const group = others.reduce((a, b) => (b.due < a.due ? b : a), first);
    this.#held.add(group);
    try {
      const ms = group.due - Date.now();
      if (ms > 0 && (await condition(stopped, ms))) return undefined;
      this.#waiting.delete(group);
      return group;
    } finally {
      this.#held.delete(group);
    }
  }
}
