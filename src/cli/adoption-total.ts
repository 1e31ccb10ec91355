import type { Adoption } from '../warehouse/adopt.js';
import { counted, number, span } from './format.js';

/** What an adoption has come to so far, chunk by chunk in the calendar's order. */
export class AdoptionTotal {
  readonly notes: string[] = [];
  #keys = 0;
  #first: string | undefined;
  #last: string | undefined;
  #rows = 0;
  #empty = 0;
  #known = 0;
  #outside: number | undefined;

  constructor(
    readonly pipeline: string,
    readonly dryRun: boolean,
  ) {}

  note(...notes: readonly string[]): void {
    this.notes.push(...notes);
  }

  add({ keys, rows, empty, known }: Adoption): void {
    this.#keys += keys.length;
    this.#first ??= keys[0];
    this.#last = keys.at(-1) ?? this.#last;
    this.#rows += rows;
    this.#empty += empty;
    this.#known += known;
  }

  /** Rows that no partition of the whole range holds. */
  addOutside(rows: number): void {
    this.#outside = rows;
  }

  /** For programs. `rowsOutside` is there only where the whole range was counted. */
  document(): object {
    return {
      pipeline: this.pipeline,
      dryRun: this.dryRun,
      adopted: this.#keys,
      first: this.#first,
      last: this.#last,
      rows: this.#rows,
      leftOut: { empty: this.#empty, known: this.#known },
      rowsOutside: this.#outside,
      notes: this.notes,
    };
  }

  /** In one line. */
  said(): string {
    const adopted = `${counted(this.#keys, 'partition')} ${this.dryRun ? 'would be adopted' : 'adopted'}, ${counted(this.#rows, 'row')}`;
    return `${`${this.pipeline} ${span(this.#first, this.#last)}`.trimEnd()}: ${adopted}`;
  }

  /** What was counted and not recorded, and what no partition can take in, a line each. */
  leftOut(): string[] {
    return [
      ...(this.#empty > 0
        ? [`${number(this.#empty)} left out that hold no row, and stay missing (--empty takes them in)`]
        : []),
      ...(this.#known > 0 ? [`${number(this.#known)} left out that the ledger knows already`] : []),
      ...(this.#outside
        ? [
            `${counted(this.#outside, 'row')} ${this.#outside === 1 ? 'lies' : 'lie'} outside the adopted partitions or ${this.#outside === 1 ? 'has' : 'have'} no date`,
          ]
        : []),
    ];
  }
}
