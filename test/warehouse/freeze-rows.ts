import type pg from 'pg';

/** Rows of the window before any fill, and in the source when attempt 1 and attempt 2 read it: told apart by number and text. */
export const ROWS = { old: 3, first: 4, second: 5 } as const;
export type Version = keyof typeof ROWS;

/** Which version's rows these are, once each; undefined for any other set. */
export function versionOf(rows: readonly string[]): Version | undefined {
  const sorted = rows.toSorted().join();
  return (Object.keys(ROWS) as Version[]).find(
    (name) => sorted === Array.from({ length: ROWS[name] }, (_, i) => `${name} ${i + 1}`).join(),
  );
}

export function describeRows(rows: readonly string[]): string {
  return `${rows.length} rows (${rows.toSorted().join(', ')})`;
}

/** The source of the TypeScript pipeline: the first who reads it may be held after a row. */
export class StallingSource {
  version: 'first' | 'second' = 'first';
  readonly stalled: Promise<void>;
  #arrive!: () => void;
  readonly #gate: Promise<void>;
  goOn!: () => void;
  #stalls: boolean;

  constructor(stalls: boolean) {
    this.#stalls = stalls;
    this.stalled = new Promise((resolve) => (this.#arrive = resolve));
    this.#gate = new Promise((resolve) => (this.goOn = resolve));
  }

  async *rows(day: string): AsyncGenerator<{ day: string; value: string }> {
    const { version: mine } = this;
    for (let n = 1; n <= ROWS[mine]; n++) {
      if (n === 2 && this.#stalls) {
        this.#stalls = false;
        this.#arrive();
        await this.#gate;
      }
      yield { day, value: `${mine} ${n}` };
    }
  }
}

/** Reads one window again and again, each time in a statement of its own. */
export class WindowReader {
  readonly #states: string[] = [];
  #stopped = false;
  #reads = 0;

  constructor(
    private readonly client: pg.Client,
    private readonly key: string,
  ) {}

  async watch(): Promise<void> {
    // Once more after the stop, so that the end is seen.
    for (let last = false; !last;) {
      last = this.#stopped;
      const { rows } = await this.client.query<{ value: string }>('SELECT value FROM target WHERE day = $1', [
        this.key,
      ]);
      const values = rows.map(({ value }) => value);
      const state = versionOf(values) ?? describeRows(values);
      if (this.#states.at(-1) !== state) this.#states.push(state);
      this.#reads += 1;
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  violations(): string[] {
    const allowed = ['old', 'old,first', 'old,second', 'old,first,second'];
    if (this.#reads < 3) return [`the reader read only ${this.#reads} times`];
    return allowed.includes(this.#states.join()) ? [] : [`a reader saw ${this.#states.join(' → ')}`];
  }
}
