import assert from 'node:assert/strict';
import { Failure } from '../../src/failure.js';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import type { ReadyFunction, SqlPipeline, TypeScriptPipeline } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillRequest } from '../../src/warehouse/fill-request.js';
import { failStraySource } from '../../src/warehouse/source-being-read.js';
import { superuserPool } from '../support/at-work.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, typescriptPipeline, until, within } from '../support/fill.js';

const DELAY = 90_000;

/** A pipeline of one row, with a `ready` of this text. */
function asking(ready: string, settings: Parameters<typeof sqlPipeline>[1] = {}): SqlPipeline {
  const query = bindParameters(ready, sqlTokens(ready), 'day');
  return { ...sqlPipeline('SELECT :date AS day', settings), ready: { query, retryAfterMs: DELAY } };
}

describe('a pipeline that asks whether its source is ready', () => {
  let test: TestDatabase;
  let elsewhere: TestDatabase;
  let database: Database;
  let source: Database;

  before(async () => {
    [test, elsewhere] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    await test.sql(`
      CREATE TABLE target (day date NOT NULL);
      CREATE TABLE written (note text);
      CREATE FUNCTION writes() RETURNS boolean LANGUAGE sql VOLATILE AS 'INSERT INTO written VALUES (''x'') RETURNING true';`);
    await elsewhere.sql('CREATE TABLE loaded (day date)');
    database = await openDatabase(test.url, { fills: 4 });
    source = await openDatabase(elsewhere.ownerUrl, { fills: 4 });
  });
  after(async () => {
    await Promise.all([database.close(), source.close()]);
    await Promise.all([test.drop(), elsewhere.drop()]);
  });
  beforeEach(async () => void (await test.sql('DELETE FROM target')));

  const rows = async (): Promise<number> => (await test.sql('SELECT FROM target')).length;
  const notReady = async (request: FillRequest): Promise<number | undefined> => {
    const failure = await failsAs(fill(database, request), 'SourceNotReady');
    assert.equal(failure.final, false);
    assert.equal(await rows(), 0);
    return failure.options.retryAfterMs;
  };

  describe('by a query', () => {
    it('is filled where that gives true, by what is bound to its parameters and in the pipeline’s zone', async () => {
      const zone = 'Europe/Paris';
      const ready = `SELECT :key = '${KEY}' AND :date = date '${KEY}' AND :end_date = date '2024-03-01'
        AND :start = timestamptz '2024-02-28 23:00Z' AND current_setting('TimeZone') = '${zone}';`;
      const partition = { column: 'day', by: 'day' as const, zone };
      assert.equal((await fill(database, fillRequest(asking(ready, { partition })))).rows, 1);
    });

    for (const [what, ready] of [
      ['false', 'SELECT false'],
      ['NULL', 'SELECT NULL::boolean'],
      ['no row', 'SELECT true WHERE false'],
    ] as const) {
      it(`is not where it gives ${what}, and says when to ask again`, async () => {
        const request = fillRequest(asking(ready));
        assert.equal(await notReady(request), DELAY);
        // It counts for nothing against the pipeline's tries.
        assert.deepEqual(await test.sql('SELECT faults FROM repave.claim WHERE run = $1', [request.owner.run]), [
          { faults: 0 },
        ]);
      });
    }

    for (const [what, ready, says] of [
      ['two rows', 'SELECT true UNION ALL SELECT true', /more than one row/],
      ['two columns', 'SELECT true, true', /2 columns/],
      ['no column', 'SELECT', /0 columns/],
      ['a text', `SELECT 'true'`, /column of another type/],
      ['a million rows', 'SELECT true FROM generate_series(1, 1000000)', /more than one row/],
    ] as const) {
      it(`is wrong where it gives ${what}`, async () => {
        const { message } = await failsAs(fill(database, fillRequest(asking(ready))), 'InvalidPipeline');
        assert.match(message, says);
      });
    }

    it('is wrong where it writes, and nothing is written', async () => {
      const { message } = await failsAs(fill(database, fillRequest(asking('SELECT writes()'))), 'InvalidPipeline');
      assert.match(message, /read-only/);
      assert.deepEqual(await test.sql('SELECT FROM written'), []);
    });

    it('asks where the pipeline’s query runs', async () => {
      const pipeline = asking('SELECT EXISTS (SELECT FROM loaded WHERE day = :date)');
      await failsAs(fill(database, fillRequest(pipeline)), 'SchemaMismatch');
      const request = { ...fillRequest(pipeline), source };
      assert.equal(await notReady(request), DELAY);
      const unreadable = asking('SELECT count(*) > 0 FROM missing');
      const { message } = await failsAs(fill(database, { ...fillRequest(unreadable), source }), 'SchemaMismatch');
      assert.match(message, /[Ss]ource/);
    });

    it('has no transaction and no lock on the target while it is asked, and is ended by a cancel', async () => {
      await elsewhere.sql('CREATE TABLE gate (closed boolean)');
      const pipeline = asking('SELECT count(*) = 0 FROM gate');
      const superuser = superuserPool(test);
      const holding = superuserPool(elsewhere);
      const lock = await holding.connect();
      try {
        await lock.query('BEGIN; LOCK TABLE gate');
        const cancel = new AbortController();
        const steps: string[] = [];
        const request = fillRequest(pipeline, { signal: cancel.signal, onStep: (step) => steps.push(step) });
        const ended = fill(database, { ...request, source }).then(
          () => undefined,
          (error: unknown) => error,
        );
        const asked = `SELECT pid FROM pg_stat_activity WHERE starts_with(application_name, 'repave ' || $1)`;
        const waits = `${asked} AND wait_event_type = 'Lock' AND datname = $2`;
        const [{ pid } = { pid: 0 }] = await until('the question', async () => {
          const found = await superuser.query<{ pid: number }>(waits, [request.owner.run, elsewhere.name]);
          return found.rows.length > 0 && found.rows;
        });
        const open = await superuser.query(`${asked} AND datname = $2 AND xact_start IS NOT NULL`, [
          request.owner.run,
          test.name,
        ]);
        assert.deepEqual(open.rows, []);
        const locks = await superuser.query(
          `SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = $1)`,
          [test.name],
        );
        assert.equal(locks.rows.length, 0);
        const reason = new Error('cancelled');
        cancel.abort(reason);
        assert.equal(await within('the cancel', ended), reason);
        assert.deepEqual((await superuser.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])).rows, []);
        assert.deepEqual(steps, ['claim', 'ready']);
      } finally {
        lock.release(true);
        await Promise.all([holding.end(), superuser.end()]);
      }
    });
  });

  describe('by a function', () => {
    let read = 0;
    const pipeline = (ready: ReadyFunction): TypeScriptPipeline => ({
      ...typescriptPipeline(() => {
        read += 1;
        return [{ day: KEY }];
      }),
      ready,
    });
    beforeEach(() => (read = 0));

    it('is filled where that says true of its window, asked before the rows are', async () => {
      const asked: unknown[] = [];
      const ready = pipeline(({ key, window, signal }) => {
        asked.push(key, window.date, signal.aborted, read);
        return true;
      });
      assert.equal((await fill(database, fillRequest(ready))).rows, 1);
      assert.deepEqual(asked, [KEY, KEY, false, 0]);
    });

    it('is not where that says false, or a delay', async () => {
      assert.equal(await notReady(fillRequest(pipeline(() => false))), 60_000);
      assert.equal(await notReady(fillRequest(pipeline(async () => '10m'))), 600_000);
      assert.equal(read, 0);
    });

    for (const [what, answer] of [
      ['a text that is no duration', 'soon'],
      ['a number', 5],
      ['nothing', undefined],
      ['null', null],
    ] as const) {
      it(`is wrong where it returns ${what}`, async () => {
        const ready = pipeline((() => answer) as unknown as ReadyFunction);
        const { message } = await failsAs(fill(database, fillRequest(ready)), 'InvalidPipeline');
        assert.match(message, /expected true, false or a duration/);
      });
    }

    it('fails as its rows would where it throws, without its message', async () => {
      const thrown = (): boolean => {
        throw new RangeError('row 7 has 12345');
      };
      for (const ready of [pipeline(thrown), pipeline(async () => thrown())]) {
        const { message } = await failsAs(fill(database, fillRequest(ready)), 'SourceFailed');
        assert.match(message, /ready\(\) of target threw RangeError/);
        assert.doesNotMatch(message, /12345/);
      }
    });

    it('fails where an error of its code is caught by nobody', async () => {
      const ready = pipeline(async () => {
        setTimeout(() => failStraySource(new Error('stray')), 1);
        return new Promise<boolean>(() => undefined);
      });
      await failsAs(within('the failure', fill(database, fillRequest(ready))), 'SourceFailed');
    });

    it('is not waited for after a cancel, or beyond the time of an attempt', async () => {
      const never = pipeline(() => new Promise<boolean>(() => undefined));
      const cancel = new AbortController();
      const ended = fill(database, fillRequest(never, { signal: cancel.signal, onStep: () => undefined }));
      const reason = new Error('cancelled');
      setTimeout(() => cancel.abort(reason), 50);
      await assert.rejects(within('the cancel', ended), (error) => error === reason);
      const late = await failsAs(
        within('the end', fill(database, fillRequest(never, { timeLeftMs: 300 }))),
        'TimedOut',
      );
      assert.ok(late instanceof Failure);
    });
  });
});
