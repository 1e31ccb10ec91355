import type { CarriedPace } from './carried.js';

/** Moments at which partitions have ended that the rate is taken from: of a batch all end at one. */
const RECENT = 50;
/** Partitions that must have ended before a rate is told. */
const KNOWN_FROM = 5;

/** How fast the most recent partitions have ended. */
export class Pace {
  #from: number;
  #ends: { readonly at: number; count: number }[];

  constructor(carried?: CarriedPace) {
    const from = carried?.from ?? Date.now();
    this.#from = from;
    this.#ends = (carried?.ends ?? []).map((ms, i) => ({ at: from + ms, count: carried?.counts?.[i] ?? 1 }));
  }

  /** Forgets what was: after a pause, or a plan, nothing is known yet. */
  restart(): void {
    this.#from = Date.now();
    this.#ends = [];
  }

  /** Counts a partition that has ended. */
  ended(): void {
    const at = Date.now();
    const last = this.#ends.at(-1);
    if (last?.at === at) last.count += 1;
    else this.#ends.push({ at, count: 1 });
    while (this.#ends.length > RECENT) this.#from = this.#ends.shift()?.at ?? this.#from;
  }

  /** Partitions a minute; undefined where it is not yet known. */
  get perMinute(): number | undefined {
    const took = (this.#ends.at(-1)?.at ?? this.#from) - this.#from;
    const count = this.#ends.reduce((sum, end) => sum + end.count, 0);
    if (count < KNOWN_FROM || took <= 0) return undefined;
    return Number(((count * 60_000) / took).toPrecision(3));
  }

  get carried(): CarriedPace {
    const several = this.#ends.some(({ count }) => count > 1);
    return {
      from: this.#from,
      ends: this.#ends.map(({ at }) => at - this.#from),
      ...(several ? { counts: this.#ends.map(({ count }) => count) } : {}),
    };
  }
}
