import assert from 'node:assert/strict';
import pg from 'pg';
import { windowOf } from '../../src/calendar/window.js';
import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { describePipeline } from '../../src/warehouse/describe.js';
import { fill } from '../../src/warehouse/fill.js';
import { readRefusal } from '../../src/warehouse/may-read.js';
import { superuserPool } from '../support/at-work.js';
import { changing, moved, versions } from '../support/changed.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, NO_LOOKS_MS } from '../support/fill.js';
import { SOURCE } from '../support/source-database.js';
import { type StatementKind, unhooked, withStatements } from '../support/statements.js';

const OTHER = '2024-03-01';
const QUERY = 'SELECT sold_on AS day, sum(amount) AS n FROM sales WHERE sold_on = :date GROUP BY sold_on';
const NEWEST = 'SELECT max(updated_at) FROM sales WHERE sold_on = :date';

const TABLES = `
CREATE TABLE sales (id int PRIMARY KEY, sold_on date NOT NULL, amount int NOT NULL, updated_at timestamptz NOT NULL, item int);
INSERT INTO sales SELECT n, date '${KEY}' + n % 2, n, timestamptz '2024-03-02' + n * interval '1 s', n % 3 FROM generate_series(1, 40) n;
CREATE TABLE items (item int PRIMARY KEY, name text NOT NULL);
INSERT INTO items VALUES (0, 'a'), (1, 'b');
CREATE TABLE parted (sold_on date NOT NULL, amount int NOT NULL) PARTITION BY RANGE (amount);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (100) TO (200);
INSERT INTO parted SELECT date '${KEY}', n FROM generate_series(1, 5) n;
CREATE VIEW seen AS SELECT * FROM sales;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM sales;`;

describe('`changed: rows`', () => {
  let test: TestDatabase;
  let database: Database;
  let names = 0;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n bigint)');
    await test.sql(TABLES);
    database = await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(() => test.sql('DELETE FROM target; DELETE FROM repave.pipeline'));

  const asked = (changed: string, query = QUERY): Promise<SqlPipeline> =>
    changing(changed, query, { name: `p${++names}` });
  /** Fills two days of a pipeline, after which nothing has changed. */
  const filled = async (...pipelines: SqlPipeline[]): Promise<void> => {
    for (const pipeline of pipelines) {
      for (const key of [KEY, OTHER]) await fill(database, fillRequest(pipeline, { key }));
      assert.deepEqual(await moved(database, pipeline), []);
    }
  };
  const amount = async (): Promise<number> =>
    (await test.sql<{ n: number }>(`SELECT n::int FROM target WHERE day = '${KEY}'`))[0]?.n ?? 0;
  const session = async (work: (client: pg.Client) => Promise<void>): Promise<void> => {
    const client = new pg.Client(test.ownerUrl);
    await client.connect();
    try {
      await work(client);
    } finally {
      await client.end();
    }
  };

  for (const [what, sql] of [
    ['an INSERT', `INSERT INTO sales VALUES (100, '${KEY}', 1, '2020-01-01', 1)`],
    ['an UPDATE that says nothing of its time', `UPDATE sales SET amount = amount + 1 WHERE id = 2`],
    ['an UPDATE that changes nothing', `UPDATE sales SET amount = amount WHERE id = 2`],
    ['a DELETE', 'DELETE FROM sales WHERE id = 4'],
    [
      'a DELETE and an INSERT of as many rows',
      `DELETE FROM sales WHERE id = 6; INSERT INTO sales VALUES (6, '${KEY}', 6, timestamptz '2024-03-02' + interval '6 s', 0)`,
    ],
    ['a row that moves into the day', `UPDATE sales SET sold_on = '${KEY}' WHERE id = 100`],
  ] as const) {
    it(`finds ${what}`, async () => {
      const pipeline = await asked('rows');
      if (what.includes('into'))
        await test.sql(
          `INSERT INTO sales VALUES (100, '2023-01-01', 1, '2020-01-01', 1) ON CONFLICT (id) DO UPDATE SET sold_on = excluded.sold_on`,
        );
      await filled(pipeline);
      await test.sql(sql);
      // And no day but this one.
      assert.deepEqual(await moved(database, pipeline), [KEY]);
      await fill(database, fillRequest(pipeline));
      assert.deepEqual(await moved(database, pipeline), []);
    });
  }

  it('finds an update that began first, says an old time and commits last, which a greatest time does not', async () => {
    const [rows, newest] = [await asked('rows'), await asked(NEWEST)];
    await session(async (late) => {
      await late.query('BEGIN');
      await late.query(`UPDATE sales SET amount = amount + 1, updated_at = '2024-03-02' WHERE id = 8`);
      await test.sql(`UPDATE sales SET amount = amount + 1, updated_at = '2024-03-03' WHERE id = 10`);
      await filled(rows);
      await test.sql('DELETE FROM target; DELETE FROM repave.pipeline');
      await filled(newest);
      await late.query('COMMIT');
    });
    assert.deepEqual(await moved(database, rows), [KEY]);
    assert.deepEqual(await moved(database, newest), []);
  });

  it('finds a delete and an insert of equal number and time, which a count and a greatest time do not', async () => {
    const [rows, counted] = [
      await asked('rows'),
      await asked('SELECT ROW(count(*), max(updated_at)) FROM sales WHERE sold_on = :date'),
    ];
    await filled(rows);
    await test.sql('DELETE FROM target; DELETE FROM repave.pipeline');
    await filled(counted);
    await test.sql(`DELETE FROM sales WHERE id = 12; INSERT INTO sales VALUES (12, '${KEY}', 99, '2024-03-02', 0)`);
    assert.deepEqual(await moved(database, rows), [KEY]);
    assert.deepEqual(await moved(database, counted), []);
  });

  for (const skipUnchanged of [false, true]) {
    it(`finds that a row is gone again which came just before the rows were read${skipUnchanged ? ', through a temporary table' : ''}`, async () => {
      const pipeline = { ...(await asked('rows')), skipUnchanged };
      await filled(pipeline);
      const before = await amount();
      // The window is locked by now, and what a fill asks for in statements of its own has been asked.
      let inserts = 0;
      const arrive = async (kind: StatementKind): Promise<void> => {
        if (kind === 'insert' && ++inserts === 1)
          await unhooked(() => test.sql(`INSERT INTO sales VALUES (200, '${KEY}', 1000, now(), 1)`));
      };
      await withStatements({ before: ({ kind }) => arrive(kind) }, () => fill(database, fillRequest(pipeline)));
      assert.equal(await amount(), before + 1000);
      // It is in the rows and in their version.
      assert.deepEqual(await moved(database, pipeline), []);
      await test.sql('DELETE FROM sales WHERE id = 200');
      assert.deepEqual(await moved(database, pipeline), [KEY]);
      await fill(database, fillRequest(pipeline));
      assert.equal(await amount(), before);
      assert.deepEqual(await moved(database, pipeline), []);
    });
  }

  for (const [what, ...statements] of [
    ['VACUUM FREEZE', 'VACUUM (FREEZE) sales'],
    ['VACUUM FULL', 'VACUUM (FULL) sales'],
    ['CLUSTER', 'CLUSTER sales USING sales_pkey'],
    ['ANALYZE and a new index', 'ANALYZE sales', 'CREATE INDEX ON sales (sold_on)'],
    ['a column with a constant default', `ALTER TABLE sales ADD COLUMN note text DEFAULT 'x'`],
    ['a lock on rows', 'BEGIN; SELECT FROM sales FOR UPDATE; COMMIT', 'BEGIN; SELECT FROM sales FOR KEY SHARE; COMMIT'],
    ['an update that was rolled back', 'BEGIN; UPDATE sales SET amount = 0; ROLLBACK'],
    ['another day’s rows', `UPDATE sales SET amount = 0 WHERE sold_on NOT IN ('${KEY}', '${OTHER}')`],
  ] as const) {
    it(`finds nothing after ${what}`, async () => {
      const pipeline = await asked('rows');
      await filled(pipeline);
      for (const statement of statements) await test.sql(statement);
      assert.deepEqual(await moved(database, pipeline), []);
    });
  }

  it('counts each of the tables that are joined, and the rows that have none on the other side', async () => {
    const query =
      'SELECT s.sold_on AS day, count(i.name) AS n FROM sales AS s LEFT JOIN items i ON i.item = s.item WHERE s.sold_on = :date GROUP BY 1';
    const pipeline = await asked('rows', query);
    for (const change of [
      `UPDATE items SET name = 'c' WHERE item = 1`,
      'DELETE FROM items WHERE item = 1',
      `INSERT INTO items VALUES (2, 'd')`,
    ]) {
      await test.sql('DELETE FROM target; DELETE FROM repave.partition');
      await filled(pipeline);
      await test.sql(change);
      assert.deepEqual(await moved(database, pipeline), [KEY, OTHER], change);
    }
  });

  it('counts the rows of a partitioned table, from part to part', async () => {
    const pipeline = await asked(
      'rows',
      'SELECT sold_on AS day, sum(amount) AS n FROM parted WHERE sold_on = :date GROUP BY 1',
    );
    await filled(pipeline);
    await test.sql('UPDATE parted SET amount = 150 WHERE amount = 3');
    assert.deepEqual(await moved(database, pipeline), [KEY]);
  });

  it('tells parts apart that one transaction has loaded', async () => {
    await test.sql(`
      CREATE TABLE exchanged (sold_on date NOT NULL, amount int NOT NULL) PARTITION BY RANGE (sold_on);
      CREATE TABLE one PARTITION OF exchanged FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
      CREATE TABLE other (sold_on date NOT NULL, amount int NOT NULL);
      BEGIN; INSERT INTO one VALUES ('${KEY}', 3); INSERT INTO other VALUES ('${KEY}', 30); COMMIT`);
    const query = 'SELECT sold_on AS day, sum(amount) AS n FROM exchanged WHERE sold_on = :date GROUP BY 1';
    const pipeline = await asked('rows', query);
    await filled(pipeline);
    await test.sql(`
      ALTER TABLE exchanged DETACH PARTITION one;
      ALTER TABLE exchanged ATTACH PARTITION other FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')`);
    assert.deepEqual(await moved(database, pipeline), [KEY]);
  });

  it('is refused of what has no versions of rows, by a fill and by check', async () => {
    const superuser = superuserPool(test);
    try {
      await superuser.query(`
        CREATE EXTENSION postgres_fdw;
        CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw;
        CREATE FOREIGN TABLE far (sold_on date, amount int) SERVER there;
        CREATE FOREIGN TABLE parted_far PARTITION OF parted FOR VALUES FROM (200) TO (300) SERVER there;
        CREATE ACCESS METHOD columns TYPE TABLE HANDLER heap_tableam_handler;
        CREATE TABLE columnar (sold_on date, amount int) USING columns;
        GRANT SELECT ON far, parted_far, columnar, seen, kept TO PUBLIC`);
    } finally {
      await superuser.end();
    }
    for (const [table, says] of [
      ['seen', /"seen" is a view, which has none/],
      ['kept', /"kept" is a materialized view/],
      ['far', /"far" is a foreign table/],
      ['parted', /the part parted_far of "parted" is a foreign table/],
      ['columnar', /"columnar" is no plain table/],
    ] as const) {
      const query = `SELECT sold_on AS day, amount AS n FROM ${table} WHERE sold_on = :date`;
      const pipeline = await asked('rows', query);
      const { message } = await failsAs(fill(database, fillRequest(pipeline)), 'InvalidPipeline');
      assert.match(message, says);
      assert.match(message, /Give a query of one value in its place/);
      const { problems } = await describePipeline(database, pipeline, undefined);
      assert.deepEqual(
        problems.map(({ type, place }) => [type, place]),
        [['InvalidPipeline', { kind: 'setting', path: ['changed'] }]],
      );
      assert.equal(problems[0]?.message, message);
    }
  });

  it('is judged by check as the server says', async () => {
    const found = async (pipeline: SqlPipeline): Promise<string[]> =>
      (await describePipeline(database, pipeline, undefined)).problems.map(
        ({ type, message }) => `${type}: ${message}`,
      );
    assert.deepEqual(await found(await asked('rows')), []);
    assert.deepEqual(await found(await asked(NEWEST)), []);
    assert.match(
      (await found(await asked('SELECT 1, 2'))).join(),
      /^InvalidPipeline: `changed` of p\d+ gives 2 columns/,
    );
    assert.match((await found(await asked('SELECT max(gone) FROM sales'))).join(), /^SchemaMismatch: .*42703/);
  });

  it('needs a right to read the table or its xmin, which doctor says', async () => {
    const pipeline = await asked('rows');
    const reads = () => readRefusal(database, pipeline, windowOf(pipeline.partition, KEY));
    const [role, all] = [test.workerRole, 'SELECT ON sales'];
    await test.sql(`REVOKE ${all} FROM ${role}; GRANT SELECT (sold_on, amount) ON sales TO ${role}`);
    try {
      assert.equal((await reads())?.type, 'PermissionDenied');
      await failsAs(fill(database, fillRequest(pipeline)), 'PermissionDenied');
      await test.sql(`GRANT SELECT (xmin, tableoid) ON sales TO ${role}`);
      assert.equal(await reads(), undefined);
      await filled(pipeline);
    } finally {
      await test.sql(`GRANT ${all} TO ${role}`);
    }
  });

  it('is asked in the database of `source`', async () => {
    const elsewhere = await createTestDatabase({ ledger: false });
    const source = await openDatabase(elsewhere.url, { fills: 2, readOnly: true });
    try {
      await elsewhere.sql(
        `CREATE TABLE sales (sold_on date NOT NULL, amount int NOT NULL); INSERT INTO sales VALUES ('${KEY}', 1)`,
      );
      await elsewhere.sql(
        'GRANT SELECT ON sales TO PUBLIC; CREATE VIEW seen AS SELECT * FROM sales; GRANT SELECT ON seen TO PUBLIC',
      );
      const pipeline = await changing('rows', QUERY, { name: `p${++names}`, source: SOURCE });
      await fill(database, { ...fillRequest(pipeline), source });
      assert.match((await versions(test, pipeline, KEY)).now ?? '', /^\d+\/1 1 -?\d+ by [0-9a-f]{8}$/);
      assert.deepEqual(await moved(database, pipeline, { source }), []);
      await elsewhere.sql('UPDATE sales SET amount = 2');
      assert.deepEqual(await moved(database, pipeline, { source }), [KEY]);
      const view = await changing('rows', QUERY.replace('sales', 'seen'), { name: `p${++names}`, source: SOURCE });
      const { message } = await failsAs(fill(database, { ...fillRequest(view), source }), 'InvalidPipeline');
      assert.match(message, /On the source of p\d+ .*"seen" is a view/);
    } finally {
      await source.close();
      await elsewhere.drop();
    }
  });
});
