import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { endFill } from '../../src/warehouse/end-fill.js';
import type { Attempt } from '../../src/warehouse/fill-request.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  failsAs,
  fillRequest,
  fills,
  KEY,
  NO_LOOKS_MS,
  openFills,
  sqlPipeline,
  typescriptPipeline,
  within,
} from '../support/fill.js';
import { type Statement, type StatementHooks, withStatements } from '../support/statements.js';
import { FreezeBench, type FreezePoint } from './freeze-case.js';
import { type Point, SteeredFill, thawAll } from './steered-fill.js';

/** The third attempt of an activity, and the one that follows its reset: Temporal counts from 1 again. */
const RESET: readonly [Attempt, Attempt] = [
  { scheduledAt: 3_000, number: 3 },
  { scheduledAt: 4_000, number: 1 },
];

describe('an activity is reset after its third attempt', () => {
  let bench: FreezeBench;
  before(async () => {
    bench = await FreezeBench.open();
  });
  after(async () => bench.close());

  const points: readonly FreezePoint[] = [
    'before claim',
    'after claim',
    'after look',
    'in insert',
    'before guard',
    'after guard',
  ];
  for (const first of points) {
    for (const second of [undefined, 'after claim', 'after look'] as const) {
      const when = second ? `while the new one is ${second}` : 'once the new one has filled';
      it(`the new attempt fills, and attempt 3, frozen ${first}, is refused ${when}`, async () => {
        assert.deepEqual(await bench.violations({ kind: 'sql', first, second, attempts: RESET }), []);
      });
    }
  }

  it('attempts ordered by number alone are caught', async () => {
    const variant = 'attempts ordered by number alone';
    const violations = await bench.violations({ kind: 'sql', first: 'after claim', attempts: RESET }, variant);
    assert.match(violations.join(), /attempt 2 failed: StaleAttempt/);
  });
});

describe('a run’s attempts and its end', () => {
  let test: TestDatabase;
  let worker: Database;
  const pipeline = sqlPipeline(`SELECT :date AS day, 'new' AS value`);
  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, value text NOT NULL)');
    worker = await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS });
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim');
    await test.sql(`INSERT INTO target VALUES ($1, 'old')`, [KEY]);
  });
  afterEach(thawAll);
  after(async () => {
    await worker.close();
    await test.drop();
  });

  const orders: readonly (readonly [older: Attempt, newer: Attempt])[] = [
    [
      { scheduledAt: 1, number: 1 },
      { scheduledAt: 1, number: 2 },
    ],
    [
      { scheduledAt: 1, number: 1 },
      { scheduledAt: 2, number: 2 },
    ],
    [
      { scheduledAt: 1, number: 9 },
      { scheduledAt: 2, number: 1 },
    ],
    [
      { scheduledAt: 1, number: 9 },
      { scheduledAt: 1, number: 10 },
    ],
  ];
  for (const [older, newer] of orders) {
    it(`(${older.scheduledAt}, ${older.number}) is refused once (${newer.scheduledAt}, ${newer.number}) has claimed, and not the other way`, async () => {
      const run = randomUUID();
      const claims = async (attempt: Attempt): Promise<SteeredFill> => {
        const claimed = new SteeredFill(test, worker, fillRequest(pipeline, { run, attempt }), ['after claim']);
        assert.equal(await claimed.rest(), 'stopped');
        return claimed;
      };
      const both = [await claims(older), await claims(newer)] as const;
      try {
        await failsAs(fill(worker, fillRequest(pipeline, { run, attempt: older })), 'StaleAttempt');
      } finally {
        for (const each of both) each.release();
      }
      assert.equal((await both[1].end()).value?.found, false);
      const { value, failure } = await both[0].end();
      assert.ok(value?.found ?? failure?.type === 'StaleAttempt', failure?.message);
      assert.deepEqual(
        (await fills(test)).map(({ attempt }) => attempt),
        [newer.number],
      );
    });
  }

  describe('endFill', () => {
    const copied = typescriptPipeline(function* () {
      yield { day: KEY, value: 'new' };
    });
    const points: readonly (readonly [Point, typeof pipeline | typeof copied])[] = [
      ['before claim', pipeline],
      ['after claim', pipeline],
      ['after pins', pipeline],
      ['after lock', pipeline],
      ['after delete', pipeline],
      ['in copy', copied],
      ['after guard', pipeline],
    ];
    for (const [point, of] of points) {
      it(`closes the run for an attempt frozen ${point}: nothing of it is left, and thawed it writes nothing`, async () => {
        const run = randomUUID();
        const frozen = new SteeredFill(test, worker, fillRequest(of, { run }), [point]);
        assert.equal(await frozen.rest(), 'stopped');
        assert.equal(await within('endFill', endFill(worker, { pipeline: 'target', key: KEY, run })), undefined);
        assert.equal(await openFills(test, run), 0);
        assert.deepEqual(await locksOf(run), []);
        frozen.release();
        const { failure } = await frozen.end();
        assert.ok(failure?.type === 'StaleAttempt' || failure?.type === 'DatabaseUnavailable', failure?.message);
        await failsAs(fill(worker, fillRequest(of, { run, attempt: 7 })), 'StaleAttempt');
        assert.deepEqual(await values(), ['old']);
        assert.deepEqual(await fills(test), []);
        // It is this run that has ended, not the partition.
        assert.equal((await fill(worker, fillRequest(of))).rows, 1);
      });
    }

    it('refuses a thawed attempt before it deletes', async () => {
      const run = randomUUID();
      const sent: string[] = [];
      const frozen = new SteeredFill(test, worker, fillRequest(pipeline, { run }), ['before begin'], ({ kind }) => {
        sent.push(kind);
        return undefined;
      });
      assert.equal(await frozen.rest(), 'stopped');
      await endFill(worker, { pipeline: 'target', key: KEY, run });
      frozen.release();
      assert.equal((await frozen.end()).failure?.type, 'StaleAttempt');
      assert.ok(sent.includes('look') && !sent.includes('delete'), sent.join());
    });

    it('lets nothing commit from the moment the claim is closed, before any backend is ended', async () => {
      const run = randomUUID();
      const frozen = new SteeredFill(test, worker, fillRequest(pipeline, { run }), ['before guard']);
      assert.equal(await frozen.rest(), 'stopped');
      let refused: string | undefined;
      const thawFirst = async ({ kind }: Statement): Promise<void> => {
        if (kind !== 'end-backends' || refused) return;
        frozen.release();
        refused = (await frozen.end()).failure?.type;
      };
      const ending = withStatements({ before: thawFirst }, async () =>
        endFill(worker, { pipeline: 'target', key: KEY, run }),
      );
      assert.equal(await within('endFill', ending), undefined);
      assert.equal(refused, 'StaleAttempt');
      assert.deepEqual(await values(), ['old']);
    });

    it('says the fill that had committed after all', async () => {
      const run = randomUUID();
      const frozen = new SteeredFill(test, worker, fillRequest(pipeline, { run }), ['in commit']);
      assert.equal(await frozen.rest(), 'stopped');
      const found = await within('endFill', endFill(worker, { pipeline: 'target', key: KEY, run }));
      assert.equal(found?.rows, 1);
      assert.ok(found.found);
      frozen.release();
      await frozen.end();
      assert.deepEqual(await values(), ['new']);
    });

    it('told twice is once', async () => {
      const run = randomUUID();
      const work = { pipeline: 'target', key: KEY, run };
      assert.deepEqual(await Promise.all([endFill(worker, work), endFill(worker, work)]), [undefined, undefined]);
      await failsAs(fill(worker, fillRequest(pipeline, { run })), 'StaleAttempt');
    });

    it('that would not close the claim is caught: the thawed attempt writes', async () => {
      const run = randomUUID();
      const frozen = new SteeredFill(test, worker, fillRequest(pipeline, { run }), ['before begin']);
      assert.equal(await frozen.rest(), 'stopped');
      const closesNothing: StatementHooks['rewrite'] = ({ kind, text, values }) =>
        kind === 'claim' ? { text: text.replace('SET closed = true', 'SET closed = c.closed'), values } : undefined;
      await withStatements({ rewrite: closesNothing }, async () =>
        endFill(worker, { pipeline: 'target', key: KEY, run }),
      );
      frozen.release();
      await frozen.end();
      assert.deepEqual(await values(), ['new']);
    });
  });

  async function values(): Promise<string[]> {
    return (await test.sql<{ value: string }>('SELECT value FROM target')).map(({ value }) => value);
  }

  /** Locks held or awaited by sessions of a run. */
  async function locksOf(run: string): Promise<unknown[]> {
    return test.sql(
      `SELECT l.locktype, l.mode FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE starts_with(a.application_name, 'repave ' || $1)`,
      [run],
    );
  }
});
