import type { BackfillPlan, Cursor, PlannedBackfill } from '../activities/messages.js';

/** Neighbouring keys that one child fills; mostly one. */
export type Batch = readonly string[];

/** Hands out a plan's keys, in the asked order and in its batches, fetching a page of them when the last is used up. */
export class KeyPager {
  readonly #plan: BackfillPlan;
  readonly #fetch: (cursor: Cursor) => Promise<readonly Batch[]>;
  #page: readonly Batch[];
  #next = 0;
  #cursor: Cursor;
  #fetching: Promise<void> | undefined;
  #ended = false;

  constructor(
    plan: BackfillPlan,
    cursor: Cursor,
    page: readonly Batch[],
    fetch: (cursor: Cursor) => Promise<readonly Batch[]>,
  ) {
    this.#plan = plan;
    this.#cursor = cursor;
    this.#page = page;
    this.#fetch = fetch;
  }

  /** Where a later run goes on. */
  get cursor(): Cursor {
    return this.#cursor;
  }

  get exhausted(): boolean {
    return this.#ended || this.#cursor.taken >= this.#plan.total;
  }

  /** The next keys; undefined when there are none, or once it is `stopped`. Rejects as the fetching activity does. */
  async take(stopped: () => boolean): Promise<Batch | undefined> {
    while (!this.exhausted && !stopped()) {
      const keys = this.#page[this.#next];
      if (keys !== undefined) {
        this.#next += 1;
        this.#cursor = { taken: this.#cursor.taken + keys.length, key: keys.at(-1) };
        return keys;
      }
      // Lanes that find the page used up at the same time wait for one fetch.
      this.#fetching ??= this.#turn();
      await this.#fetching;
    }
    return undefined;
  }

  async #turn(): Promise<void> {
    try {
      this.#page = await this.#fetch(this.#cursor);
      this.#next = 0;
      this.#ended = this.#page.length === 0;
    } finally {
      this.#fetching = undefined;
    }
  }
}

/** The first page of a plan, which came with it. */
export function firstPage({ keys, batches }: Pick<PlannedBackfill, 'keys' | 'batches'>): readonly Batch[] {
  return batches ?? keys.map((key) => [key]);
}
