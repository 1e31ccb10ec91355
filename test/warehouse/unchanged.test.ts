import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { endFill } from '../../src/warehouse/end-fill.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillOutcome } from '../../src/warehouse/fill-request.js';
import { partitionHistory } from '../../src/warehouse/partitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import {
  failsAs,
  fillRequest,
  KEY,
  ledgerRows,
  NO_LOOKS_MS,
  sqlPipeline,
  typescriptPipeline,
} from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { unhooked, withStatements } from '../support/statements.js';

const QUERY = 'SELECT day, a, b FROM source WHERE day >= :date AND day < :end_date';

describe('skipUnchanged', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
  });

  /** Source and target of two columns of a type, the target's rows of the day as a fill of its own has written them. */
  async function made(type: string, rows: string): Promise<void> {
    await test.sql(`CREATE TABLE source (day date NOT NULL, a ${type}, b text); CREATE TABLE target (LIKE source);
      INSERT INTO source SELECT '${KEY}', * FROM (VALUES ${rows}) v(a, b);
      INSERT INTO target (day, b) VALUES ('2024-03-01', 'neighbour')`);
    assert.equal((await run()).unchanged, undefined);
  }

  const held = () => test.sql('SELECT *, xmin::text, ctid::text FROM target ORDER BY ctid');
  const pipeline = (settings: Partial<SqlPipeline> = {}, query = QUERY) =>
    sqlPipeline(query, { ...settings, skipUnchanged: true });
  const run = (settings: Partial<SqlPipeline> = {}, query = QUERY): Promise<FillOutcome> =>
    fill(database, fillRequest(pipeline(settings, query)));

  it('writes no row where the new ones equal the old, and the ledger says so', async () => {
    await made('int', "(1, 'x'), (2, 'y'), (2, 'y'), (NULL, NULL)");
    const before = await held();
    const first = (await ledgerRows(test))[0];
    const outcome = await run({
      checks: [
        { kind: 'rows', min: 4, max: 4 },
        { kind: 'change', maxPercent: 0 },
      ],
    });
    assert.deepEqual([outcome.rows, outcome.deleted, outcome.unchanged, outcome.found], [4, 0, true, false]);
    assert.deepEqual(await held(), before, 'xmin and ctid too');
    assert.deepEqual(
      await test.sql('SELECT rows_deleted::int AS d, rows_inserted::int AS i, unchanged FROM repave.fill ORDER BY id'),
      [
        { d: 0, i: 4, unchanged: false },
        { d: 0, i: 4, unchanged: true },
      ],
    );
    const [newest] = await partitionHistory(database, 'target', KEY);
    assert.ok(newest?.kind === 'fill' && newest.unchanged);
    assert.deepEqual(
      newest.checks.map(({ passed }) => passed),
      [true, true],
    );
    const [row] = await ledgerRows(test);
    assert.equal(row?.rows, 4);
    assert.ok(Number(row.fence) > Number(first?.fence), 'it is a fill like others');
  });

  it('is off by default', async () => {
    await made('int', "(1, 'x')");
    const before = await held();
    const outcome = await fill(database, fillRequest(sqlPipeline(QUERY)));
    assert.deepEqual([outcome.deleted, outcome.unchanged], [1, undefined]);
    assert.notDeepEqual(await held(), before);
  });

  const DIFFERENT: Readonly<Record<string, readonly [type: string, old: string, change: string]>> = {
    'another value': ['int', "(1, 'x'), (2, 'y')", `UPDATE source SET a = 3 WHERE a = 2`],
    'one row more': ['int', "(1, 'x')", `INSERT INTO source VALUES ('${KEY}', 2, 'y')`],
    'one row fewer': ['int', "(1, 'x'), (2, 'y')", 'DELETE FROM source WHERE a = 2'],
    'a, b, b for a, a, b': [
      'int',
      "(1, 'a'), (1, 'a'), (1, 'b')",
      `UPDATE source SET b = 'b' WHERE ctid = (SELECT min(ctid) FROM source)`,
    ],
    'a duplicate more': ['int', "(1, 'a')", 'INSERT INTO source SELECT * FROM source'],
    "NULL for ''": ['int', "(1, '')", 'UPDATE source SET b = NULL'],
    'a swap of two columns’ values': ['text', "('x', 'y')", 'UPDATE source SET a = b, b = a'],
    'a letter on the other side of the columns': ['text', "('xy', 'z')", "UPDATE source SET a = 'x', b = 'yz'"],
    'a comma on the other side of the columns': ['text', "('x,y', 'z')", "UPDATE source SET a = 'x', b = 'y,z'"],
    'a swap between two rows': ['int', "(1, 'a'), (2, 'b')", 'UPDATE source SET a = 3 - a'],
    '1.00 for 1.0': ['numeric', "(1.0, 'a')", 'UPDATE source SET a = 1.00'],
    'json in another layout': ['json', `('{"a": 1}'::json, 'a')`, `UPDATE source SET a = '{"a":1}'`],
    'minus zero': ['float8', "(0::float8, 'a')", `UPDATE source SET a = '-0'`],
    'a trailing space': ['text', "('a', 'a')", `UPDATE source SET b = 'a '`],
    'no row for one of NULLs': ['int', '(NULL::int, NULL)', `DELETE FROM source`],
  };
  for (const [what, [type, old, change]] of Object.entries(DIFFERENT)) {
    it(`writes where there is ${what}`, async () => {
      await made(type, old);
      assert.equal((await run()).unchanged, true, 'the same before');
      await test.sql(change);
      const outcome = await run();
      assert.equal(outcome.unchanged, undefined);
      assert.ok(outcome.deleted > 0);
      const [{ same } = { same: false }] = await test.sql<{ same: boolean }>(
        `SELECT (SELECT array_agg(s::text ORDER BY s::text) FROM source s) IS NOT DISTINCT FROM
                (SELECT array_agg(t::text ORDER BY t::text) FROM target t WHERE day = '${KEY}') AS same`,
      );
      assert.ok(same);
      assert.equal((await run()).unchanged, true, 'the same again');
    });
  }

  it('casts as the target does: what it rounds, pads or reads is equal', async () => {
    await test.sql(`CREATE TYPE mood AS ENUM ('low'); CREATE DOMAIN small AS smallint CHECK (VALUE > 0);
      CREATE TABLE target (day date NOT NULL, "Num" numeric(6,2), v varchar(5), c char(4), m mood, s small, l text[], i interval(0), at timestamptz(3), r int4range)`);
    const query = `SELECT :date AS day, 1.005 AS "Num", 'ab' AS v, 'ab' AS c, 'low' AS m, 7 AS s, ARRAY['x', NULL, 'a,b'] AS l,
      interval '1.6 seconds' AS i, timestamptz '2024-02-29 12:00:00.123456+02' AS at, int4range(1, 5, '[]') AS r`;
    await run({}, query);
    const before = await held();
    assert.equal((await run({}, query)).unchanged, true);
    assert.deepEqual(await held(), before);
  });

  it('leaves out columns that are not written: identity, default and generated ones', async () => {
    await test.sql(`CREATE TABLE target (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, day date NOT NULL, a int,
        loaded timestamptz NOT NULL DEFAULT clock_timestamp(), doubled int GENERATED ALWAYS AS (a * 2) STORED)`);
    const query = 'SELECT :date AS day, a FROM generate_series(1, 3) a';
    await run({}, query);
    const before = await held();
    assert.equal((await run({}, query)).unchanged, true);
    assert.deepEqual(await held(), before);
  });

  for (const [what, type, left] of [
    ['NULL', 'json', null],
    ['its constant default', `varchar(5) DEFAULT lower('NEW')`, 'new'],
  ] as const) {
    it(`takes a column that is written no more for changed where it is not at ${what}`, async () => {
      await test.sql(`CREATE TABLE target (day date NOT NULL, a int, b ${type}, loaded timestamptz DEFAULT now())`);
      await run({}, `SELECT :date AS day, a, '1' AS b FROM generate_series(1, 2) a`);
      const without = 'SELECT :date AS day, a FROM generate_series(1, 2) a';
      assert.equal((await run({}, without)).unchanged, undefined);
      assert.deepEqual(await test.sql('SELECT DISTINCT b::text FROM target'), [{ b: left }]);
      assert.equal((await run({}, without)).unchanged, true);
    });
  }

  it('compares by what is written where the table works the partition column out itself', async () => {
    await test.sql(`CREATE TABLE target (at timestamp NOT NULL, day date NOT NULL GENERATED ALWAYS AS (at::date) STORED);
      INSERT INTO target VALUES ('2024-03-01 12:00')`);
    const query = `SELECT :date + make_interval(hours => h) AS at FROM generate_series(1, 3) h`;
    await run({}, query);
    const before = await held();
    assert.equal((await run({}, query)).unchanged, true);
    assert.deepEqual(await held(), before);
    await failsAs(run({}, `SELECT :date + interval '1 day 12 hours' AS at`), 'RowsOutsideWindow');
  });

  it('runs the query once, whether something has changed or not', async () => {
    await test.sql(`CREATE TABLE source (day date NOT NULL, a int, b text); CREATE TABLE target (LIKE source);
      CREATE SEQUENCE asked; GRANT USAGE ON asked TO ${test.workerRole}`);
    const query = `SELECT :date AS day, 1 AS a, (nextval('asked') IS NULL)::text AS b`;
    for (const [i, unchanged] of [undefined, true, true].entries()) {
      assert.equal((await run({}, query)).unchanged, unchanged);
      assert.deepEqual(await test.sql('SELECT last_value::int AS n FROM asked'), [{ n: i + 1 }]);
    }
  });

  it('empties a window as ever, and an empty one that stays empty is unchanged', async () => {
    await made('int', "(1, 'x')");
    await test.sql('DELETE FROM source');
    const emptied = await run();
    assert.deepEqual(
      [emptied.rows, emptied.deleted, emptied.warnings, emptied.unchanged],
      [0, 1, ['emptied'], undefined],
    );
    const again = await run();
    assert.deepEqual([again.rows, again.deleted, again.warnings, again.unchanged], [0, 0, [], true]);
  });

  it('holds what stands to the checks all the same', async () => {
    await made('int', "(1, 'x')");
    const before = await held();
    await failsAs(run({ checks: [{ kind: 'range', column: 'a', min: '2' }] }), 'CheckFailed');
    const sum = {
      kind: 'sum' as const,
      column: 'a',
      equals: { text: 'SELECT 1', parameters: ['date', 'end_date'] as const, pieces: ['SELECT 1'], slots: [] },
    };
    const warned = await run({ checks: [{ kind: 'range', column: 'a', min: '2', severity: 'warn' }, sum] });
    assert.deepEqual([warned.unchanged, warned.warnings], [true, ['check: range (a)']]);
    assert.deepEqual(await held(), before);
  });

  it('refuses rows outside the window, and those of another scope', async () => {
    await made('int', "(1, 'x')");
    const failure = await failsAs(run({}, 'SELECT day + 5 AS day, a, b FROM source'), 'RowsOutsideWindow');
    assert.match(failure.message, /1 of 1 row /);
    await failsAs(run({ scope: { b: 'y' } }), 'RowsOutsideWindow');
    const before = await held();
    assert.equal((await run({ scope: { b: 'x' } })).unchanged, true);
    assert.deepEqual(await held(), before);
  });

  it('refuses a query that reads its target through a view, with a trigger as without', async () => {
    await made('int', "(1, 'x')");
    await test.sql(`CREATE VIEW seen AS SELECT * FROM target; GRANT SELECT ON seen TO ${test.workerRole}`);
    const query = 'SELECT day, a, b FROM seen WHERE day = :date';
    await failsAs(run({}, query), 'InvalidPipeline');
    await test.sql(`CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER pass BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION pass()`);
    await failsAs(run({}, query), 'InvalidPipeline');
    assert.equal((await run()).unchanged, true);
  });

  it('where a trigger changes rows nothing is ever unchanged, and where it drops some they are missed', async () => {
    await test.sql(`CREATE TABLE source (day date NOT NULL, a int, b text); CREATE TABLE target (LIKE source);
      INSERT INTO source VALUES ('${KEY}', 1, 'x');
      CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.b = 'drop' THEN RETURN NULL; END IF; NEW.a := NEW.a + 1; RETURN NEW; END $$;
      CREATE TRIGGER touch BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION touch()`);
    for (const deleted of [0, 1, 1]) {
      const outcome = await run();
      assert.deepEqual([outcome.deleted, outcome.unchanged], [deleted, undefined]);
      assert.deepEqual(await test.sql('SELECT a FROM target'), [{ a: 2 }]);
    }
    await test.sql(`UPDATE source SET b = 'drop'`);
    await failsAs(run(), 'SchemaMismatch');
  });

  it('what the target holds its rows to is said by the target: NOT NULL, constraints', async () => {
    await made('int', "(1, 'x')");
    await test.sql(`DELETE FROM target WHERE day <> '${KEY}'`);
    await test.sql('ALTER TABLE target ALTER a SET NOT NULL, ADD CONSTRAINT positive CHECK (a > 0)');
    await test.sql('UPDATE source SET a = NULL');
    assert.match((await failsAs(run(), 'DataError')).message, /23502.*column "a".*public\.target/);
    await test.sql('UPDATE source SET a = -1');
    assert.match((await failsAs(run(), 'DataError')).message, /positive/);
  });

  it('another session’s row behind the comparison is a Conflict, and nothing is recorded', async () => {
    await made('int', "(1, 'x')");
    const before = (await test.sql('SELECT FROM repave.fill')).length;
    const failure = await failsAs(
      withStatements(
        {
          after: ({ text }) =>
            text.includes(' AS same')
              ? unhooked(async () => void (await test.sql(`INSERT INTO target VALUES ('${KEY}', 9, 'foreign')`)))
              : undefined,
        },
        () => run(),
      ),
      'Conflict',
    );
    assert.match(failure.message, /Another session inserted 1 row/);
    assert.equal((await test.sql('SELECT FROM repave.fill')).length, before);
  });

  it('needs the right to make temporary tables, and says so', async () => {
    await made('int', "(1, 'x')");
    await asSuperuser(test, `REVOKE TEMPORARY ON DATABASE ${test.name} FROM PUBLIC`);
    try {
      const failure = await failsAs(run(), 'PermissionDenied');
      assert.match(failure.message, /`skipUnchanged`.*GRANT TEMPORARY ON DATABASE/);
    } finally {
      await asSuperuser(test, `GRANT TEMPORARY ON DATABASE ${test.name} TO PUBLIC`);
    }
  });

  it('an attempt that finds its run’s fill says unchanged too, and so does whoever ends the run', async () => {
    await made('int', "(1, 'x')");
    const run = randomUUID();
    assert.equal((await fill(database, fillRequest(pipeline(), { run }))).unchanged, true);
    const found = await fill(database, fillRequest(pipeline(), { run, attempt: 2 }));
    assert.deepEqual([found.found, found.unchanged, found.rows, found.deleted], [true, true, 1, 0]);
    const ended = await endFill(database, { pipeline: 'target', key: KEY, run });
    assert.deepEqual([ended?.found, ended?.unchanged], [true, true]);
  });

  it('leaves nothing behind in the session: neither table nor rows', async () => {
    await made('int', "(1, 'x')");
    const single = await openDatabase(test.url, { fills: 1 });
    try {
      for (let i = 0; i < 3; i++) assert.equal((await fill(single, fillRequest(pipeline()))).unchanged, true);
    } finally {
      await single.close();
    }
    assert.deepEqual(await test.sql(`SELECT FROM pg_class WHERE relname = 'repave_rows'`), []);
  });

  it('compares the rows of a TypeScript pipeline as well, and none', async () => {
    await made('int', "(1, 'x')");
    let value = 5;
    const typescript = {
      ...typescriptPipeline(() =>
        value
          ? [
              { day: KEY, a: value, b: 'x' },
              { day: KEY, a: null, b: 'x' },
            ]
          : [],
      ),
      skipUnchanged: true,
    };
    const spooled = () => fill(database, fillRequest(typescript));
    assert.equal((await spooled()).unchanged, undefined);
    const before = await held();
    assert.deepEqual([(await spooled()).unchanged, await held()], [true, before]);
    value = 6;
    assert.equal((await spooled()).deleted, 2);
    value = 0;
    assert.deepEqual((await spooled()).warnings, ['emptied']);
    assert.equal((await spooled()).unchanged, true);
  });
});
