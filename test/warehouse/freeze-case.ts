import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { openDatabase, type Database } from '../../src/warehouse/database.js';
import type { Attempt } from '../../src/warehouse/fill-request.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  fillRequest,
  fills,
  ledgerRows,
  NO_LOOKS_MS,
  openFills,
  SCHEDULED_AT,
  sqlPipeline,
  typescriptPipeline,
  until,
} from '../support/fill.js';
import { untilLetGo } from '../support/lock-waits.js';
import { type BrokenVariant, rewriteFor } from './broken-variants.js';
import { describeRows, ROWS, StallingSource, versionOf, WindowReader } from './freeze-rows.js';
import { type End, type Point, SteeredFill, thawAll } from './steered-fill.js';

/** `streamed`: TypeScript with `stage: false`, whose source is read in the transaction. */
export type PipelineKind = Pipeline['kind'] | 'streamed';

/** The advisory lock at which a source row waits while its day is in `gate`. */
const GATE = 77;

/** Where attempt 1 stops: a point of its statements, or a place in its source. */
export type FreezePoint = Point | 'in insert' | 'in source';

/** One place of the freeze matrix. */
export interface FreezeCase {
  readonly kind: PipelineKind;
  /** Where attempt 1 is frozen. */
  readonly first: FreezePoint;
  /** How far attempt 2 comes before attempt 1 goes on: to its end, or to here. */
  readonly second?: Point;
  /** Which attempts of the run they are. Default: its first and its second. */
  readonly attempts?: readonly [Attempt, Attempt];
}

const FIRST_AND_SECOND: readonly [Attempt, Attempt] = [
  { scheduledAt: SCHEDULED_AT, number: 1 },
  { scheduledAt: SCHEDULED_AT + 60_000, number: 2 },
];

/** A database with a target, a source and two workers, on which the cases of the matrix are run, each in a partition of its own. */
export class FreezeBench {
  #day = 0;

  private constructor(
    private readonly test: TestDatabase,
    private readonly workers: readonly [Database, Database],
    private readonly reader: pg.Client,
    private readonly gateHolder: pg.Client,
  ) {}

  static async open(): Promise<FreezeBench> {
    const test = await createTestDatabase();
    await test.sql(`
      CREATE TABLE target (day date NOT NULL, value text NOT NULL);
      CREATE TABLE source (day date NOT NULL, number int NOT NULL, value text NOT NULL);
      CREATE TABLE gate (day date PRIMARY KEY);
      CREATE FUNCTION passes(row_day date, number int) RETURNS boolean LANGUAGE plpgsql AS $$
      BEGIN
        IF number = 2 AND EXISTS (SELECT FROM gate WHERE day = row_day) THEN
          PERFORM pg_advisory_xact_lock_shared(${GATE});
        END IF;
        RETURN true;
      END $$;`);
    const connected = async (): Promise<pg.Client> => {
      const client = new pg.Client({ connectionString: test.url });
      await client.connect();
      return client;
    };
    const worker = (): Promise<Database> => openDatabase(test.url, { fills: 2, watchEveryMs: NO_LOOKS_MS });
    return new FreezeBench(test, [await worker(), await worker()], await connected(), await connected());
  }

  async close(): Promise<void> {
    await thawAll();
    for (const worker of this.workers) await worker.close();
    await this.reader.end();
    await this.gateHolder.end();
    await this.test.drop();
  }

  /** Runs one case and returns what it broke of what is promised; empty where all held. */
  async violations(
    { kind, first, second, attempts = FIRST_AND_SECOND }: FreezeCase,
    variant?: BrokenVariant,
  ): Promise<string[]> {
    const key = new Date(Date.UTC(2020, 0, ++this.#day)).toISOString().slice(0, 10);
    const run = randomUUID();
    await this.test.sql(`INSERT INTO target SELECT $1, 'old ' || n FROM generate_series(1, ${ROWS.old}) n`, [key]);
    await this.#offer(key, 'first');
    const source = new StallingSource(first === 'in source');
    const pipeline =
      kind === 'sql'
        ? sqlPipeline(QUERY)
        : typescriptPipeline(() => source.rows(key), { stage: kind === 'typescript' });
    const rewrite = (): ReturnType<typeof rewriteFor> => {
      const broken = variant && rewriteFor(variant);
      return (statement) => broken?.(statement) ?? untilLetGo(statement);
    };
    const seen = new WindowReader(this.reader, key);
    const watching = seen.watch();
    const found: string[] = [];
    try {
      if (first === 'in insert') await this.#closeGate(key);
      const stops = first === 'in insert' || first === 'in source' ? [] : [first];
      const one = new SteeredFill(
        this.test,
        this.workers[0],
        fillRequest(pipeline, { key, run, attempt: attempts[0] }),
        stops,
        rewrite(),
      );
      if (first === 'in source') await source.stalled;
      else
        assert.equal(
          await one.rest(),
          first === 'in insert' ? 'blocked' : 'stopped',
          `attempt 1 never came to ${first}`,
        );
      await this.test.sql('DELETE FROM gate WHERE day = $1', [key]);
      await this.#offer(key, 'second');
      source.version = 'second';

      const two = new SteeredFill(
        this.test,
        this.workers[1],
        fillRequest(pipeline, { key, run, attempt: attempts[1] }),
        second ? [second] : [],
        rewrite(),
      );
      if (second) await two.rest();
      else await two.end();
      if (first === 'in insert') await this.gateHolder.query('SELECT pg_advisory_unlock_all()');
      // What it has not claimed it has not begun: until then attempt 1 is the newest.
      const mayCommit = first === 'in commit' || !two.claimed;
      source.goOn();
      one.release();
      await one.rest();
      two.release();
      const ends = [await one.end(), await two.end()] as const;
      found.push(...(await this.#judge(key, run, attempts[0].number, ends, mayCommit)));
    } finally {
      await this.gateHolder.query('SELECT pg_advisory_unlock_all()');
      source.goOn();
      seen.stop();
      await watching;
    }
    found.push(...seen.violations());
    return found;
  }

  /** What holds at the end, whatever happened: one copy, one current row in the ledger, and each attempt told the truth. */
  async #judge(
    key: string,
    run: string,
    first: number,
    [one, two]: readonly [End, End],
    firstMayCommit: boolean,
  ): Promise<string[]> {
    const entries = await fills(this.test, 'target', key);
    const current = (await ledgerRows(this.test)).filter((row) => row.key === key);
    const rows = await this.test.sql<{ value: string }>('SELECT value FROM target WHERE day = $1', [key]);
    const values = rows.map(({ value }) => value);
    const [entry] = entries;
    if (!entry || entries.length > 1) return [`${entries.length} committed fills of one run`];
    const stands = entry.attempt === first ? 'first' : 'second';
    const found: string[] = [];
    const check = (holds: boolean, otherwise: string): void => {
      if (!holds) found.push(otherwise);
    };
    check(stands === 'second' || firstMayCommit, 'attempt 1 committed after attempt 2 had begun');
    check(versionOf(values) === stands, `the fill is the ${stands} attempt’s, and ${describeRows(values)} stand`);
    check(entry.inserted === ROWS[stands], `the ledger says ${entry.inserted} rows`);
    check(current.length === 1 && current[0]?.outcome === 'filled', 'the ledger has not one current row');
    check(current[0]?.fence === entry.fence && current[0].rows === entry.inserted, 'the current row is not the fill’s');
    check(two.value !== undefined, `attempt 2 failed: ${two.failure?.type}: ${two.failure?.message}`);
    check(two.value?.fence === entry.fence, 'attempt 2 was told another fill');
    check(two.value?.found === (stands === 'first'), 'attempt 2 was not told whose fill it is');
    if (one.value) {
      check(one.value.fence === entry.fence, 'attempt 1 was told another fill');
      check(one.value.found === (stands === 'second'), 'attempt 1 was not told whose fill it is');
    } else {
      check(stands === 'second', 'attempt 1 committed and was told that it failed');
      // An attempt whose backend a newer one has ended sees a lost connection.
      check(
        one.failure?.type === 'StaleAttempt' || one.failure?.type === 'DatabaseUnavailable',
        `attempt 1 failed as ${one.failure?.type}: ${one.failure?.message}`,
      );
    }
    // An ended backend says so to its client before it has gone.
    await until('no session of the run is left in a transaction', async () => (await openFills(this.test, run)) === 0);
    return found;
  }

  async #offer(key: string, of: 'first' | 'second'): Promise<void> {
    await this.test.sql('DELETE FROM source WHERE day = $1', [key]);
    await this.test.sql(`INSERT INTO source SELECT $1, n, $2 || ' ' || n FROM generate_series(1, $3::int) n`, [
      key,
      of,
      ROWS[of],
    ]);
  }

  async #closeGate(key: string): Promise<void> {
    await this.gateHolder.query('SELECT pg_advisory_lock($1)', [GATE]);
    await this.test.sql('INSERT INTO gate VALUES ($1)', [key]);
  }
}

const QUERY = 'SELECT day, value FROM source WHERE day >= :date AND day < :end_date AND passes(day, number)';
