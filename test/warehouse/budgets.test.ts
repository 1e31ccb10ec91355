import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FailureType } from '../../src/contract.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  failsAs,
  fillRequest,
  fills,
  KEY,
  ledgerRows,
  NO_LOOKS_MS,
  sqlPipeline,
  typescriptPipeline,
  until,
} from '../support/fill.js';
import { SteeredFill, thawAll } from './steered-fill.js';

describe('the two budgets of a partition', () => {
  let test: TestDatabase;
  let worker: Database;
  const good = sqlPipeline(`SELECT :date AS day, 'new' AS value`);

  before(async () => {
    test = await createTestDatabase();
    await test.sql(`
      CREATE TABLE target (day date NOT NULL, value text NOT NULL);
      CREATE FUNCTION raises(code text) RETURNS text LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'as told' USING ERRCODE = code;
      END $$;
      CREATE FUNCTION loses_its_connection() RETURNS text LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(60);
        RETURN 'never';
      END $$;`);
    worker = await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS });
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim, repave.failure');
  });
  afterEach(thawAll);
  after(async () => {
    await worker.close();
    await test.drop();
  });

  const throws = typescriptPipeline(() => {
    throw new TypeError('the source is broken');
  });
  const counted: readonly (readonly [FailureType, string, Pipeline, timeLeftMs?: number])[] = [
    ['SourceFailed', 'a source that throws', throws],
    ['TimedOut', 'a source that never answers', typescriptPipeline(stalls), 1_000],
    ['TimedOut', 'a statement that somebody cancels', raising('57014')],
    ['Unexpected', 'an error that no rule names', raising('XX001')],
  ];
  for (const [type, what, pipeline, timeLeftMs] of counted) {
    it(`${type}, ${what}, is tried retry.attempts times, and final then`, async () => {
      const run = randomUUID();
      let tried = 0;
      // On a slow machine the time may be up before the claim: that is no try.
      for (let attempt = 1; tried < 3; attempt++) {
        const failure = await failsAs(fill(worker, fillRequest(pipeline, { run, attempt, timeLeftMs })), type);
        tried = (await faults(run)) ?? 0;
        assert.equal(failure.final, tried === 3);
        if (failure.final) assert.match(failure.message, /\(try 3 of 3\)$/);
      }
    });
  }

  const world: readonly (readonly [FailureType, string, Pipeline])[] = [
    [
      'DatabaseUnavailable',
      'a connection that is ended',
      sqlPipeline('SELECT :date AS day, loses_its_connection() AS value'),
    ],
    ['DatabaseUnavailable', 'a full disk', raising('53100')],
    ['DatabaseUnavailable', 'no connection left', raising('53300')],
    ['DatabaseUnavailable', 'a server that shuts down', raising('57P03')],
    ['DatabaseUnavailable', 'a read-only server', raising('25006')],
    ['Conflict', 'a serialization failure', raising('40001')],
    ['Conflict', 'a deadlock', raising('40P01')],
    ['Conflict', 'a lock not got', raising('55P03')],
  ];
  for (const [type, what, pipeline] of world) {
    it(`${type}, ${what}, uses up nothing`, async () => {
      const run = randomUUID();
      for (const attempt of [1, 2, 3, 4, 5]) {
        const failure = await failsAs(fill(worker, fillRequest(pipeline, { run, attempt })), type);
        assert.ok(!failure.final);
      }
      assert.equal(await faults(run), 0);
      assert.equal((await fill(worker, fillRequest(good, { run, attempt: 6 }))).rows, 1);
    });
  }

  it('faults of the pipeline add up over kinds, with the world’s between', async () => {
    const run = randomUUID();
    const attempts: readonly (readonly [FailureType, Pipeline])[] = [
      ['SourceFailed', throws],
      ['Conflict', raising('40001')],
      ['TimedOut', raising('57014')],
      ['DatabaseUnavailable', raising('53300')],
    ];
    for (const [i, [type, pipeline]] of attempts.entries()) {
      assert.ok(!(await failsAs(fill(worker, fillRequest(pipeline, { run, attempt: i + 1 })), type)).final);
    }
    assert.ok((await failsAs(fill(worker, fillRequest(raising('XX001'), { run, attempt: 5 })), 'Unexpected')).final);
  });

  it('retry.attempts 1: the first fault is final', async () => {
    const once = typescriptPipeline(throws.rows, { retry: { attempts: 1, giveUpAfterMs: 1_000 } });
    assert.ok((await failsAs(fill(worker, fillRequest(once)), 'SourceFailed')).final);
  });

  it('each run begins with all its tries', async () => {
    for (const run of [randomUUID(), randomUUID()]) {
      await failsAs(fill(worker, fillRequest(throws, { run })), 'SourceFailed');
      assert.equal(await faults(run), 1);
    }
  });

  it('a final failure, a cancel and a stale attempt’s fault count nothing', async () => {
    const run = randomUUID();
    assert.ok((await failsAs(fill(worker, fillRequest(raising('23514'), { run, attempt: 1 })), 'DataError')).final);

    const cancel = new AbortController();
    const cancelled = fill(worker, fillRequest(typescriptPipeline(stalls), { run, attempt: 2, signal: cancel.signal }));
    await until('the source is asked', async () => (await claimedAttempt(run)) === 2);
    cancel.abort(new Error('no more'));
    await assert.rejects(cancelled, /no more/);

    let goOn!: () => void;
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    // eslint-disable-next-line require-yield -- It throws instead.
    const late = typescriptPipeline(async function* () {
      await gate;
      throw new Error('late');
    });
    const stale = failsAs(fill(worker, fillRequest(late, { run, attempt: 3 })), 'SourceFailed');
    await until('attempt 3 has claimed', async () => (await claimedAttempt(run)) === 3);
    const newest = new SteeredFill(test, worker, fillRequest(good, { run, attempt: 4 }), ['after claim']);
    assert.equal(await newest.rest(), 'stopped');
    goOn();
    assert.ok(!(await stale).final);
    assert.equal(await faults(run), 0);
    newest.release();
    assert.equal((await newest.end()).value?.rows, 1);
  });

  describe('recordFailure', () => {
    const record = async (run: string, message = 'why'): Promise<unknown> =>
      recordFailure(worker, { pipeline: 'target', key: KEY, run, attempt: 3, type: 'DataError', message });

    it('says failed, and what stands stays on record', async () => {
      await fill(worker, fillRequest(good));
      const run = randomUUID();
      await failsAs(fill(worker, fillRequest(raising('23514'), { run })), 'DataError');
      assert.equal(await record(run), undefined);
      const [row] = await ledgerRows(test);
      assert.deepEqual([row?.outcome, row?.failureType, row?.run, row?.rows], ['failed', 'DataError', run, 1]);
      await fill(worker, fillRequest(good));
      const [mended] = await ledgerRows(test);
      assert.deepEqual([mended?.outcome, mended?.failureType], ['filled', null]);
    });

    it('does not hide another run’s later fill: that has the higher fence', async () => {
      const run = randomUUID();
      await failsAs(fill(worker, fillRequest(raising('23514'), { run })), 'DataError');
      const other = randomUUID();
      await fill(worker, fillRequest(good, { run: other }));
      await record(run);
      const [row] = await ledgerRows(test);
      assert.deepEqual([row?.outcome, row?.run], ['filled', other]);
      assert.deepEqual(await failures(), [{ run, type: 'DataError', message: 'why' }]);
    });

    it('where the run had committed after all, returns that and records nothing', async () => {
      const run = randomUUID();
      await fill(worker, fillRequest(good, { run }));
      assert.ok(await record(run));
      assert.deepEqual(await failures(), []);
      assert.equal((await ledgerRows(test))[0]?.outcome, 'filled');
    });

    it('ends the fill first: a frozen attempt writes nothing behind it', async () => {
      const run = randomUUID();
      const frozen = new SteeredFill(test, worker, fillRequest(good, { run }), ['before guard']);
      assert.equal(await frozen.rest(), 'stopped');
      assert.equal(await record(run), undefined);
      frozen.release();
      assert.ok((await frozen.end()).failure);
      assert.deepEqual(await fills(test), []);
      assert.equal((await ledgerRows(test))[0]?.outcome, 'failed');
    });

    it('told twice is once, and a run that never claimed has failed too', async () => {
      const run = randomUUID();
      await record(run);
      await record(run, 'again');
      assert.deepEqual(await failures(), [{ run, type: 'DataError', message: 'why' }]);
      assert.equal((await ledgerRows(test))[0]?.outcome, 'failed');
    });
  });

  async function faults(run: string): Promise<number | undefined> {
    const [row] = await test.sql<{ faults: number }>('SELECT faults FROM repave.claim WHERE run = $1', [run]);
    return row?.faults;
  }

  async function claimedAttempt(run: string): Promise<number | undefined> {
    const [row] = await test.sql<{ attempt: number }>('SELECT attempt FROM repave.claim WHERE run = $1', [run]);
    return row?.attempt;
  }

  async function failures(): Promise<unknown[]> {
    return test.sql('SELECT run, type, message FROM repave.failure ORDER BY id');
  }
});

/** A pipeline whose query the server answers with this SQLSTATE. */
function raising(code: string): Pipeline {
  return sqlPipeline(`SELECT :date AS day, raises('${code}') AS value`);
}

// eslint-disable-next-line require-yield -- A source that hangs has no row.
async function* stalls(): AsyncGenerator<never> {
  await new Promise(() => undefined);
}
