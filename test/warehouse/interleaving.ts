import { randomUUID } from 'node:crypto';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  fillRequest,
  fills,
  ledgerRows,
  NO_LOOKS_MS,
  openFills,
  sqlPipeline,
  typescriptPipeline,
} from '../support/fill.js';
import { untilLetGo } from '../support/lock-waits.js';
import type { StatementHooks } from '../support/statements.js';
import { type Point, SteeredFill, thawAll } from './steered-fill.js';

/** Two runs, by name; and how often each row of theirs must stand in the window at the end. */
const RUNS = ['a', 'b'] as const;
type Run = (typeof RUNS)[number];
const ROWS: Readonly<Record<Run, number>> = { a: 3, b: 4 };

/** Orders tried at once: most of an order's time is spent waiting for the server. */
const LANES = 6;

/** An order of steps: each letter lets that run go one step on. */
export type Order = string;

/** Every order of `steps` steps of two runs, each run's own steps in their order. */
export function orders(steps: number): Order[] {
  const from = (a: number, b: number): Order[] =>
    a + b === 0
      ? ['']
      : [
          ...(a > 0 ? from(a - 1, b).map((rest) => `a${rest}`) : []),
          ...(b > 0 ? from(a, b - 1).map((rest) => `b${rest}`) : []),
        ];
  return from(steps, steps);
}

export interface Trial {
  readonly kind: Pipeline['kind'];
  /** Where a step begins. The first is where the fill begins. */
  readonly steps: readonly Point[];
  /** Whether the window holds rows before. */
  readonly full: boolean;
  /** The rewriting of a broken variant, made anew for each fill. */
  readonly rewrite?: () => StatementHooks['rewrite'];
}

/** What an order broke of what is promised. */
export interface Broken {
  readonly order: Order;
  /** More rows stand than the last fill put there. */
  readonly duplicated: boolean;
  readonly violations: readonly string[];
}

/** A database with a target and two workers, on which two runs fill one window in a given order of their steps. */
export class InterleavingBench {
  #day = 0;

  private constructor(
    private readonly test: TestDatabase,
    private readonly workers: Readonly<Record<Run, Database>>,
  ) {}

  static async open(): Promise<InterleavingBench> {
    const test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, value text NOT NULL)');
    const worker = (): Promise<Database> => openDatabase(test.url, { fills: LANES, watchEveryMs: NO_LOOKS_MS });
    return new InterleavingBench(test, { a: await worker(), b: await worker() });
  }

  async close(): Promise<void> {
    await thawAll();
    for (const run of RUNS) await this.workers[run].close();
    await this.test.drop();
  }

  /** Runs every order of a trial, some at once in partitions of their own, and returns those that broke a promise. */
  async broken(trial: Trial): Promise<Broken[]> {
    const left = orders(trial.steps.length);
    const broken: Broken[] = [];
    const lane = async (): Promise<void> => {
      for (let order = left.shift(); order !== undefined; order = left.shift()) {
        const outcome = await this.run(trial, order);
        if (outcome.violations.length > 0) broken.push(outcome);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    return broken;
  }

  /** Runs one order. A step that waits for a lock goes on when it can; the order's next step does not wait for it. */
  async run(trial: Trial, order: Order): Promise<Broken> {
    const key = new Date(Date.UTC(2020, 0, ++this.#day)).toISOString().slice(0, 10);
    if (trial.full)
      await this.test.sql(`INSERT INTO target SELECT $1, 'old ' || n FROM generate_series(1, 5) n`, [key]);
    const ids: Readonly<Record<Run, string>> = { a: randomUUID(), b: randomUUID() };
    const start = (run: Run): SteeredFill => {
      const request = fillRequest(pipeline(trial.kind, run, key), { key, run: ids[run] });
      const broken = trial.rewrite?.();
      return new SteeredFill(
        this.test,
        this.workers[run],
        request,
        trial.steps,
        (statement) => broken?.(statement) ?? untilLetGo(statement),
      );
    };
    const steered: Readonly<Record<Run, SteeredFill>> = { a: start('a'), b: start('b') };
    for (const run of RUNS) await steered[run].rest();
    for (const run of order as Iterable<Run>) {
      steered[run].step();
      for (const each of RUNS) await steered[each].rest();
    }
    return this.#judge(key, order, ids, steered);
  }

  async #judge(
    key: string,
    order: Order,
    ids: Readonly<Record<Run, string>>,
    steered: Readonly<Record<Run, SteeredFill>>,
  ): Promise<Broken> {
    const violations: string[] = [];
    for (const run of RUNS) {
      const { value, failure } = await steered[run].end();
      if (failure) violations.push(`run ${run} failed: ${failure.type}: ${failure.message}`);
      else if (value?.found) violations.push(`run ${run} was told another's fill`);
    }
    const entries = await fills(this.test, 'target', key);
    const last = entries.at(-1);
    const rows = await this.test.sql<{ value: string }>('SELECT value FROM target WHERE day = $1', [key]);
    const values = rows.map(({ value }) => value).toSorted();
    const winner = RUNS.find((run) => ids[run] === last?.run);
    const expected = winner && Array.from({ length: ROWS[winner] }, (_, i) => `${winner} ${i + 1}`);
    if (values.join() !== expected?.join()) violations.push(`${values.join()} stand after run ${winner}'s fill`);
    if (entries.length !== 2) violations.push(`${entries.length} committed fills of two runs`);
    const current = (await ledgerRows(this.test)).find((row) => row.key === key);
    if (current?.run !== last?.run || current?.rows !== last?.inserted)
      violations.push('the ledger is not the last fill');
    for (const run of RUNS) {
      if ((await openFills(this.test, ids[run])) > 0) violations.push(`run ${run} is left in a transaction`);
    }
    return { order, duplicated: expected !== undefined && values.length > expected.length, violations };
  }
}

function pipeline(kind: Pipeline['kind'], run: Run, day: string): Pipeline {
  if (kind === 'sql') {
    return sqlPipeline(`SELECT :date AS day, '${run} ' || n AS value FROM generate_series(1, ${ROWS[run]}) n`);
  }
  return typescriptPipeline(function* () {
    for (let n = 1; n <= ROWS[run]; n++) yield { day, value: `${run} ${n}` };
  });
}
