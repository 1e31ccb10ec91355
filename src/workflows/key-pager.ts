import type { BackfillPlan, Cursor, NextKeysRequest } from '../activities/messages.js';

/** Hands out a plan's keys one by one, in the asked order, fetching a page of them when the last is used up. */
export class KeyPager {
  readonly #plan: BackfillPlan;
  readonly #fetch: (request: NextKeysRequest) => Promise<readonly string[]>;
  #page: readonly string[];
  #next = 0;
  #cursor: Cursor;
  #fetching: Promise<void> | undefined;
  #ended = false;

  constructor(
    plan: BackfillPlan,
    cursor: Cursor,
    page: readonly string[],
    fetch: (request: NextKeysRequest) => Promise<readonly string[]>,
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

  /** The next key; undefined when there is none. Rejects as the fetching activity does. */
  async take(): Promise<string | undefined> {
    while (!this.exhausted) {
      const key = this.#page[this.#next];
      if (key !== undefined) {
        this.#next += 1;
        this.#cursor = { taken: this.#cursor.taken + 1, key };
        return key;
      }
      // Lanes that find the page used up at the same time wait for one fetch.
      this.#fetching ??= this.#turn();
      await this.#fetching;
    }
    return undefined;
  }

  async #turn(): Promise<void> {
    try {
      const { pipeline, policy, range, list } = this.#plan;
      this.#page = await this.#fetch({ pipeline, ledger: policy.ledger, range, list, cursor: this.#cursor });
      this.#next = 0;
      this.#ended = this.#page.length === 0;
    } finally {
      this.#fetching = undefined;
    }
  }
}
