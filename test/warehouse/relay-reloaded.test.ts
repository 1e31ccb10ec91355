import assert from 'node:assert/strict';
import pg from 'pg';
import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { refuseNotReady } from '../../src/warehouse/ready.js';
import { superuserPool } from '../support/at-work.js';
import { changing, moved, versions } from '../support/changed.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, NO_LOOKS_MS, settled, until } from '../support/fill.js';
import { relay, relayPipeline, SOURCE } from '../support/source-database.js';
import { unhooked, withStatements } from '../support/statements.js';

const TABLES = `
CREATE TABLE sales (sold_on date NOT NULL, amount int NOT NULL);
INSERT INTO sales VALUES ('${KEY}', 1), ('${KEY}', 2);
CREATE VIEW seen AS SELECT * FROM sales WHERE amount > 0;
CREATE FUNCTION total(d date) RETURNS bigint LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN (SELECT count(*) FROM sales WHERE sold_on = d); END';
CREATE TABLE parted (sold_on date NOT NULL, amount int NOT NULL) PARTITION BY RANGE (sold_on);
CREATE TABLE parted_2024 PARTITION OF parted FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO parted VALUES ('${KEY}', 1), ('${KEY}', 2);
CREATE MATERIALIZED VIEW kept AS SELECT * FROM sales;
GRANT SELECT ON sales, seen, parted, kept TO PUBLIC`;

const AGAIN = `VALUES ('${KEY}', 3), ('${KEY}', 4)`;
const RELOAD = `TRUNCATE sales; INSERT INTO sales ${AGAIN}`;
const EXCHANGE = `CREATE TABLE next (LIKE sales); INSERT INTO next ${AGAIN}; GRANT SELECT ON next TO PUBLIC; DROP TABLE sales CASCADE; ALTER TABLE next RENAME TO sales`;
const of = (table: string): string =>
  `SELECT sold_on AS day, sum(amount) AS n FROM ${table} WHERE sold_on = :date GROUP BY 1`;

describe('another PostgreSQL that is reloaded while it is read', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let database: Database;
  let source: Database;
  let superuser: pg.Pool;
  let names = 0;

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    await test.sql('CREATE TABLE target (day date NOT NULL, n bigint)');
    superuser = superuserPool(remote);
    [database, source] = await Promise.all([
      openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS }),
      openDatabase(remote.url, { fills: 4, readOnly: true, watchEveryMs: NO_LOOKS_MS }),
    ]);
  });
  after(async () => {
    await Promise.all([database.close(), source.close(), superuser.end()]);
    await Promise.all([test.drop(), remote.drop()]);
  });
  beforeEach(async () => {
    await remote.sql('DROP TABLE IF EXISTS sales, parted CASCADE; DROP FUNCTION IF EXISTS total');
    await remote.sql(TABLES);
    await test.sql(`DELETE FROM target; DELETE FROM repave.pipeline; INSERT INTO target VALUES ('${KEY}', 99)`);
  });

  const named = (query: string): SqlPipeline => relayPipeline(query, { name: `p${++names}` });
  const stands = async (): Promise<number[]> =>
    (await test.sql<{ n: number }>('SELECT n::int FROM target')).map(({ n }) => n);
  /** Runs `work` while a transaction that has done `ddl` is open; commits that once what `work` asks waits for it. */
  const beside = async <T>(ddl: string, work: () => Promise<T>): Promise<T> => {
    const holder = new pg.Client(remote.ownerUrl);
    await holder.connect();
    try {
      await holder.query(`BEGIN; ${ddl}`);
      const working = work();
      await until('the source’s table is waited for', async () => {
        const { rows } = await superuser.query(
          `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`,
          [remote.name],
        );
        return rows.length > 0;
      });
      await holder.query('COMMIT');
      return await working;
    } finally {
      await holder.end();
    }
  };

  for (const [what, query, ddl, n] of [
    ['truncated and loaded again', of('sales'), RELOAD, 7],
    ['exchanged for another of its name', of('sales'), EXCHANGE, 7],
    [
      'written anew',
      of('sales'),
      'DROP VIEW seen; DROP MATERIALIZED VIEW kept; ALTER TABLE sales ALTER amount TYPE bigint',
      3,
    ],
    ['truncated and loaded again, behind a view', of('seen'), RELOAD, 7],
    ['locked and no more', of('sales'), 'LOCK TABLE sales', 3],
    ['refreshed', of('kept'), `INSERT INTO sales ${AGAIN}; REFRESH MATERIALIZED VIEW kept`, 10],
  ] as const) {
    it(`gives the rows that are there then, of a table that is ${what}`, async () => {
      const { warnings } = await beside(ddl, () => relay(database, source, named(query)));
      assert.deepEqual(warnings, []);
      assert.deepEqual(await stands(), [n]);
    });
  }

  // The server says only as it plans or runs the query that it reads these; the role may not even look at them.
  for (const [what, query, ddl] of [
    ['a part of a table', of('parted'), `TRUNCATE parted_2024; INSERT INTO parted ${AGAIN}`],
    ['what a function reads', 'SELECT :date::date AS day, total(:date) AS n', RELOAD],
  ] as const) {
    it(`is read again, of ${what}, and the old rows stand until then`, async () => {
      const pipeline = named(query);
      const { failure } = await beside(ddl, () => settled(relay(database, source, pipeline)));
      assert.equal(failure?.type, 'Conflict');
      assert.match(failure.message, /^On the source of p\d+ .*truncated, written anew or exchanged.*tried again/);
      assert.deepEqual(await stands(), [99]);
      await relay(database, source, pipeline);
      assert.deepEqual(await stands(), [query.includes('total') ? 2 : 7]);
    });
  }

  it('is left for later where each snapshot is too old', async () => {
    let [fresh, snapshots] = [false, 0];
    const reload = async (): Promise<void> => {
      if (!fresh) return;
      fresh = false;
      snapshots++;
      await unhooked(() => remote.sql(RELOAD));
    };
    const { failure } = await withStatements(
      {
        before: ({ kind, text }) => {
          if (text.includes('REPEATABLE READ')) fresh = true;
          // The first that names the table.
          return kind === 'describe' ? reload() : undefined;
        },
      },
      () => settled(relay(database, source, named(of('sales')))),
    );
    assert.equal(failure?.type, 'Conflict');
    assert.equal(snapshots, 5);
    assert.deepEqual(await stands(), [99]);
  });

  for (const changed of ['rows', 'SELECT sum(amount) FROM sales WHERE sold_on = :date']) {
    it(`has its version in the snapshot of the rows: ${changed}`, async () => {
      const pipeline = await changing(changed, of('sales'), { name: `p${++names}`, source: SOURCE });
      await relay(database, source, pipeline);
      let begun = 0;
      await withStatements(
        {
          before: async ({ kind, text }) => {
            // What was asked before the transaction of the rows has been asked.
            if (kind !== 'begin' || !text.includes('REPEATABLE READ') || ++begun > 1) return;
            await unhooked(() => remote.sql(`INSERT INTO sales VALUES ('${KEY}', 1000)`));
          },
        },
        () => relay(database, source, pipeline),
      );
      assert.equal(begun, 1);
      assert.deepEqual(await stands(), [1003]);
      assert.deepEqual(await moved(database, pipeline, { source }), []);
      await remote.sql('DELETE FROM sales WHERE amount = 1000');
      assert.deepEqual(await moved(database, pipeline, { source }), [KEY]);
    });
  }

  it('has the version of what is there then', async () => {
    const pipeline = await changing('SELECT count(*) FROM sales WHERE sold_on = :date', of('sales'), {
      name: `p${++names}`,
      source: SOURCE,
    });
    await beside(RELOAD, () => relay(database, source, pipeline));
    const version = `2 by ${pipeline.changed?.hash}`;
    assert.deepEqual(await versions(test, pipeline, KEY), { fills: [version], now: version });
    assert.deepEqual(await beside(RELOAD, () => moved(database, pipeline, { source })), []);
  });

  it('is ready where it is so then, behind a view too', async () => {
    const query = { ...named('SELECT EXISTS (SELECT FROM seen WHERE sold_on = :date)').query };
    const pipeline: SqlPipeline = { ...named(of('sales')), ready: { query, retryAfterMs: 1_000 } };
    const asked = () => refuseNotReady(database, { ...fillRequest(pipeline), source }, 1);
    await beside(RELOAD, asked);
    await remote.sql('TRUNCATE sales');
    await failsAs(asked(), 'SourceNotReady');
  });
});
