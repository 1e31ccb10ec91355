import type { RestingPartition } from '../warehouse/resting.js';

/** Partitions that a note names. */
const NAMED = 3;

/** The partitions of a plan that rest and are left out of it: of all pages their number, of one page the keys. */
export class Resting {
  readonly #pipeline: string;
  readonly #first: RestingPartition[] = [];
  #page: ReadonlySet<string> = new Set();
  count = 0;

  constructor(pipeline: string) {
    this.#pipeline = pipeline;
  }

  /** Takes in those of the next page. */
  add(resting: readonly RestingPartition[]): void {
    this.#page = new Set(resting.map(({ key }) => key));
    this.#first.push(...resting.slice(0, NAMED - this.#first.length));
    this.count += resting.length;
  }

  /** Whether a partition of the page that was taken in last rests. */
  has(key: string): boolean {
    return this.#page.has(key);
  }

  /** Says to people which rest, why, and what to do; nothing where none does. */
  get notes(): readonly string[] {
    const [one] = this.#first;
    if (!one) return [];
    const fill = `repave backfill ${this.#pipeline} ${this.#first.map(({ key }) => key).join(' ')}`;
    if (this.count === 1) {
      const times = one.tries === 1 ? '1 try' : `${one.tries} tries`;
      return [
        `1 partition rests after ${times} as ${one.type}: ${one.key}. Mend the cause, and fill it by name: ${fill}`,
      ];
    }
    const named = this.#first.map(({ key, type, tries }) => `${key} (${type}, ${tries}×)`).join(', ');
    const more = this.count > this.#first.length ? ', …' : '';
    return [
      `${this.count} partitions rest, since they have failed in the same way too often: ${named}${more}. Mend the cause, and fill ` +
        `them by name, such as: ${fill}`,
    ];
  }
}
