import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import type { FillOutcome } from '../../src/warehouse/fill-request.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  failsAs,
  fillRequest,
  fills,
  ledgerRows,
  NO_LOOKS_MS,
  settled,
  sqlPipeline,
  typescriptPipeline,
  within,
} from '../support/fill.js';
import { untilLetGo } from '../support/lock-waits.js';
import { type BrokenVariant, rewriteFor } from './broken-variants.js';
import { type End, type Point, SteeredFill, thawAll } from './steered-fill.js';

const KEY = '2024-02-29';
const WORKERS = 3;

describe('runs at once', () => {
  let test: TestDatabase;
  const workers: Database[] = [];
  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, value text NOT NULL)');
    for (let i = 0; i < WORKERS; i++)
      workers.push(await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS }));
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim');
  });
  afterEach(thawAll);
  after(async () => {
    for (const worker of workers) await worker.close();
    await test.drop();
  });

  for (const kind of ['sql', 'typescript'] as const) {
    it(`three of one window, 40 rounds, ${kind}: all end well, one copy, the ledger’s last fill is the data`, async () => {
      for (let round = 1; round <= 40; round++) {
        const started = ['a', 'b', 'c'].map((name, i) => ({ name, run: randomUUID(), size: i + 2 }));
        const outcomes = await Promise.all(
          started.map(({ name, run, size }, i) => finish(workers[i], rows(kind, name, size), KEY, run)),
        );
        const entries = (await fills(test)).slice(-3);
        const last = started.find(({ run }) => run === entries.at(-1)?.run);
        assert.deepEqual(new Set(entries.map(({ run }) => run)), new Set(started.map(({ run }) => run)));
        assert.ok(outcomes.every(({ found }) => !found));
        assert.deepEqual(await values(KEY), copies(last?.name, last?.size));
        assert.deepEqual(
          (await ledgerRows(test)).map(({ run, rows }) => ({ run, rows })),
          [{ run: last?.run, rows: last?.size }],
        );
      }
    });
  }

  for (const state of ['an empty', 'a full'] as const) {
    it(`two of ${state} day of 3 source rows, 20 rounds: 3 rows`, async () => {
      for (let round = 1; round <= 20; round++) {
        await test.sql('DELETE FROM target');
        if (state === 'a full') await test.sql(`INSERT INTO target VALUES ($1, 'old 1'), ($1, 'old 2')`, [KEY]);
        await Promise.all([0, 1].map((i) => finish(workers[i], rows('sql', 'new', 3), KEY)));
        assert.deepEqual(await values(KEY), copies('new', 3));
      }
    });
  }

  it('days 1 to 10 and 5 to 15 from sources that differ: each day wholly one of them, as the ledger says, and no deadlock', async () => {
    const backfill = async (worker: Database | undefined, name: string, size: number, from: number, to: number) => {
      const run = randomUUID();
      const days = Array.from({ length: to - from + 1 }, (_, i) => `2024-01-${String(from + i).padStart(2, '0')}`);
      const all = days.length;
      await Promise.all(
        Array.from({ length: 4 }, async () => {
          for (let day = days.shift(); day !== undefined; day = days.shift()) {
            await finish(worker, rows('sql', name, size), day, run);
          }
        }),
      );
      return { run, name, size, all };
    };
    for (let round = 1; round <= 5; round++) {
      const ended = await Promise.all([
        backfill(workers[0], 'early', 3, 1, 10),
        backfill(workers[1], 'late', 4, 5, 15),
      ]);
      const ledger = await ledgerRows(test);
      assert.equal(ledger.length, 15);
      assert.equal((await fills(test)).length, round * (10 + 11));
      for (const { key, run, rows: count } of ledger) {
        const writer = ended.find((each) => each.run === run);
        assert.deepEqual(await values(key), copies(writer?.name, writer?.size), key);
        assert.equal(count, writer?.size);
      }
    }
  });

  it('two days of 10,000 rows, 20 rounds: exact every time', async () => {
    const days = ['2024-01-01', '2024-01-02'];
    for (let round = 1; round <= 20; round++) {
      await Promise.all(days.map((day, i) => finish(workers[i], rows('sql', `round ${round}`, 10_000), day)));
      const counted = await test.sql(
        `SELECT day::text, count(*)::int AS rows, count(DISTINCT value)::int AS different FROM target GROUP BY 1 ORDER BY 1`,
      );
      assert.deepEqual(
        counted,
        days.map((day) => ({ day, rows: 10_000, different: 10_000 })),
      );
    }
  });

  describe('rows spooled before another run’s fill', () => {
    it('are read again, since the source may have changed in between', async () => {
      let version = 'early';
      let asked = 0;
      const spooling = typescriptPipeline(function* ({ key }) {
        asked += 1;
        yield { day: key, value: `${version} 1` };
      });
      const slow = new SteeredFill(test, workers[0] ?? assert.fail(), fillRequest(spooling), ['before lock']);
      assert.equal(await slow.rest(), 'stopped');
      version = 'late';
      await finish(workers[1], rows('sql', 'late', 1), KEY);
      slow.release();
      assert.equal((await slow.end()).value?.rows, 1);
      assert.equal(asked, 2);
      assert.deepEqual(await values(KEY), copies('late', 1));
    });

    it('three times over give way: Conflict, and the other’s rows stand', async () => {
      const overtaking = typescriptPipeline(async function* ({ key }) {
        await finish(workers[1], rows('sql', 'other', 2), key);
        yield { day: key, value: 'mine 1' };
      });
      const conflict = await failsAs(fill(workers[0] ?? assert.fail(), fillRequest(overtaking)), 'Conflict');
      assert.ok(!conflict.final);
      assert.equal((await fills(test)).length, 3);
      assert.deepEqual(await values(KEY), copies('other', 2));
    });
  });

  describe('a broken protocol is caught', () => {
    it('no window lock: three runs that meet before their guards leave three copies', async () => {
      await meet('no window lock', 'before guard');
      assert.equal((await values(KEY)).length, 9);
    });

    it('one fence for all runs: of three runs that have claimed two fail', async () => {
      const ends = await meet('one fence for all runs', 'after claim');
      assert.equal(ends.filter(({ failure }) => failure?.type === 'StaleAttempt').length, 2);
    });

    async function meet(variant: BrokenVariant, point: Point): Promise<End[]> {
      const steered = workers.map((worker, i) => {
        const pipeline = rows('sql', `run ${i}`, 3);
        const broken = rewriteFor(variant);
        return new SteeredFill(
          test,
          worker,
          fillRequest(pipeline),
          [point],
          (statement) => broken(statement) ?? untilLetGo(statement),
        );
      });
      for (const each of steered) assert.equal(await each.rest(), 'stopped');
      for (const each of steered) each.release();
      return Promise.all(steered.map(async (each) => each.end()));
    }
  });

  async function values(key: string): Promise<string[]> {
    const found = await test.sql<{ value: string }>('SELECT value FROM target WHERE day = $1', [key]);
    return found.map(({ value }) => value).toSorted();
  }
});

/** Fills as a run does: what waits for the world is tried again, as its next attempt. */
async function finish(
  database: Database | undefined,
  pipeline: Pipeline,
  key: string,
  run: string = randomUUID(),
): Promise<FillOutcome> {
  if (!database) throw new Error('There is no such worker');
  return within(
    `the fill of ${key}`,
    (async () => {
      for (let attempt = 1; ; attempt++) {
        const { value, failure } = await settled(fill(database, fillRequest(pipeline, { key, run, attempt })));
        if (!failure) return value;
        // A wait that was given up has no SQLSTATE; a deadlock would have.
        if (failure.type !== 'Conflict' || failure.options.sqlstate !== undefined) throw failure;
      }
    })(),
  );
}

/** A pipeline of `size` rows: `name 1`, `name 2`, … */
function rows(kind: Pipeline['kind'], name: string, size: number): Pipeline {
  if (kind === 'sql')
    return sqlPipeline(`SELECT :date AS day, '${name} ' || n AS value FROM generate_series(1, ${size}) n`);
  return typescriptPipeline(function* ({ key }) {
    for (let n = 1; n <= size; n++) yield { day: key, value: `${name} ${n}` };
  });
}

function copies(name = 'nobody', size = 0): string[] {
  return Array.from({ length: size }, (_, i) => `${name} ${i + 1}`);
}
