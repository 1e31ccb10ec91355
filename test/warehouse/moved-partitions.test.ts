import assert from 'node:assert/strict';
import type { SqlPipeline, TypeScriptPipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { superuserPool } from '../support/at-work.js';
import { changing, moved } from '../support/changed.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, PATIENT, sqlPipeline, typescriptPipeline, until, within } from '../support/fill.js';
import { type Statement, withStatements } from '../support/statements.js';

const DAYS = 450;

describe('partitions whose source has moved', () => {
  let test: TestDatabase;
  let database: Database;
  let asking: SqlPipeline;

  before(async () => {
    test = await createTestDatabase();
    await test.sql(`
      CREATE TABLE versions (day date PRIMARY KEY, version int);
      INSERT INTO versions SELECT date '2023-01-01' + n, CASE WHEN n % 100 = 7 THEN 2 ELSE 1 END FROM generate_series(0, ${DAYS - 1}) n`);
    asking = await changing('SELECT version FROM versions WHERE day = :date', 'SELECT :date AS day');
    // Each was filled when its source had version 1; of the first five none is known.
    await test.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence, source_version)
       SELECT 'target', (date '2023-01-01' + n)::text, 'filled', 1, 'v1:x', now(), 'r', 1, n, CASE WHEN n >= 5 THEN $1 END
         FROM generate_series(0, ${DAYS - 1}) n`,
      [`1 by ${asking.changed?.hash}`],
    );
    database = await openDatabase(test.url, { fills: 1, ...PATIENT });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  const UNKNOWN = ['2023-01-01', '2023-01-02', '2023-01-03', '2023-01-04', '2023-01-05'];
  const MOVED = [...UNKNOWN, '2023-01-08', '2023-04-18', '2023-07-27', '2023-11-04', '2024-02-12'];

  it('are those of another version, and those of none', async () => {
    assert.deepEqual(await moved(database, asking), MOVED);
  });

  it('are asked one after the other, some hundred in a transaction, with one statement each', async () => {
    const turns: { asks: number; statements: number; readonly began: number; last: number }[] = [];
    const before = ({ text }: Statement): void => {
      if (text.startsWith('BEGIN') && text.includes('READ ONLY'))
        turns.push({ asks: 0, statements: 0, began: performance.now(), last: 0 });
      const turn = turns.at(-1);
      if (!turn) return;
      turn.statements += 1;
      turn.last = performance.now();
      if (/^SELECT ARRAY[^]*FROM versions/.test(text)) turn.asks += 1;
    };
    await withStatements({ before }, () => moved(database, asking));
    assert.equal(
      turns.reduce((sum, { asks }) => sum + asks, 0),
      DAYS - UNKNOWN.length,
    );
    for (const { asks, statements } of turns) assert.ok(statements <= asks + 4, `${statements} statements`);
    // A transaction of 3 s, on a slow machine, asks no more.
    for (const { asks, began, last } of turns.slice(0, -1))
      assert.ok(asks === 200 || (asks < 200 && last - began > 3_000), `${asks} in ${last - began} ms`);
  });

  it('are found though all fills’ connections are in use', async () => {
    const held = await database.session(new AbortController().signal);
    try {
      assert.deepEqual(await within('the answer', moved(database, asking)), MOVED);
    } finally {
      held.release();
    }
  });

  it('are asked of a function, but not where no version is known', async () => {
    const asked: string[] = [];
    const pipeline: TypeScriptPipeline = {
      ...typescriptPipeline(() => []),
      changed: ({ key }) => {
        asked.push(key);
        return key === '2023-06-01' ? '2' : `1 by ${asking.changed?.hash}`;
      },
    };
    assert.deepEqual(await moved(database, pipeline), [...UNKNOWN, '2023-06-01']);
    assert.equal(asked.length, DAYS - UNKNOWN.length);
  });

  it('are those too of which there is no answer, while there is one of others', async () => {
    const dividing = await changing('SELECT -1 / (version - 2) FROM versions WHERE day = :date', 'SELECT :date AS day');
    await test.sql(`UPDATE repave.partition SET source_version = replace(source_version, $1, $2)`, [
      asking.changed?.hash,
      dividing.changed?.hash,
    ]);
    try {
      assert.deepEqual(await moved(database, dividing), MOVED);
      await test.sql('UPDATE versions SET version = 2 WHERE version = 1');
      const failure = await failsAs(moved(database, dividing), 'DataError');
      assert.match(failure.message, /^`changed` of target: PostgreSQL answered 22012\..* Asked of 2023-01-06\.$/);
    } finally {
      await test.sql("UPDATE versions SET version = 1 WHERE (day - date '2023-01-01') % 100 <> 7");
      await test.sql(`UPDATE repave.partition SET source_version = replace(source_version, $2, $1)`, [
        asking.changed?.hash,
        dividing.changed?.hash,
      ]);
    }
    const coded = (answers: boolean): TypeScriptPipeline => ({
      ...typescriptPipeline(() => []),
      changed: ({ key }) => {
        if (key === '2023-06-01' || !answers) throw new TypeError('gone');
        return `1 by ${asking.changed?.hash}`;
      },
    });
    assert.deepEqual(await moved(database, coded(true)), [...UNKNOWN, '2023-06-01']);
    const failure = await failsAs(moved(database, coded(false)), 'SourceFailed');
    assert.match(failure.message, /Asked of 2023-01-06\.$/);
  });

  it('are all, where the pipeline cannot say', async () => {
    assert.equal((await moved(database, sqlPipeline('SELECT :date AS day'))).length, DAYS);
  });

  it('are asked no longer once it is aborted, and no query is left', async () => {
    const superuser = superuserPool(test);
    const lock = await superuser.connect();
    try {
      await lock.query('BEGIN; LOCK TABLE versions');
      const cancel = new AbortController();
      const asked = moved(database, asking, { signal: cancel.signal }).catch((error: unknown) => error);
      const waiting = `SELECT pid FROM pg_stat_activity WHERE application_name = 'repave plan' AND datname = $1`;
      await until('the question', async () => {
        const { rows } = await superuser.query(`${waiting} AND wait_event_type = 'Lock'`, [test.name]);
        return rows.length > 0;
      });
      const reason = new Error('cancelled');
      cancel.abort(reason);
      assert.equal(await within('the cancel', asked), reason);
      assert.deepEqual((await superuser.query(waiting, [test.name])).rows, []);
    } finally {
      lock.release(true);
      await superuser.end();
    }
  });
});
