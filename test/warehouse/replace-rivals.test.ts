import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { openDatabase } from '../../src/warehouse/database.js';
import { endOverdueHolders } from '../../src/warehouse/end-backends.js';
import { holderOf } from '../../src/warehouse/holder.js';
import { fill } from '../../src/warehouse/fill.js';
import { type WindowLock, windowLock } from '../../src/warehouse/lock.js';
import { migrate } from '../../src/warehouse/migrate.js';
import { createTestDatabase, startPrivatePostgres, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, ledgerRows, sqlPipeline, until, withWorker } from '../support/fill.js';
import { type Statement, unhooked, withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';

const QUERY = 'SELECT day, n FROM source WHERE day >= :date AND day < :end_date';
const pipeline = sqlPipeline(QUERY);
const TABLES = `CREATE TABLE source (day date NOT NULL, n int);
  INSERT INTO source SELECT '${KEY}', k FROM generate_series(1, 3) k;
  CREATE TABLE target (day date NOT NULL, n int);
  INSERT INTO target VALUES ('${KEY}', 10), ('${KEY}', 20), ('2024-03-01', 30)`;

describe('others at a fill’s table', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(TABLES);
  });

  const held = (table = 'target') => test.sql(`SELECT day::text, n, xmin::text FROM ${table} ORDER BY day, n`);

  for (const point of ['insert', 'constraints', 'count'] as const) {
    it(`a session that inserts into the window before the ${point}: Conflict, old rows and its own`, async () => {
      await withWorker(test, async (database) => {
        let inserted = 0;
        const failure = await failsAs(
          withStatements(
            {
              before: async ({ kind }) => {
                if (kind !== point || inserted > 0) return;
                inserted += 1;
                await unhooked(() => test.sql(`INSERT INTO target VALUES ('${KEY}', 99)`));
              },
            },
            () => fill(database, fillRequest(pipeline)),
          ),
          'Conflict',
        );
        assert.equal(inserted, 1);
        assert.match(failure.message, /Another session inserted 1 row into the window/);
        assert.deepEqual(await test.sql(`SELECT n FROM target WHERE day = '${KEY}' ORDER BY n`), [
          { n: 10 },
          { n: 20 },
          { n: 99 },
        ]);
        assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
      });
      assert.deepEqual(await test.sql(`SELECT n FROM target WHERE day = '${KEY}' ORDER BY n`), [
        { n: 1 },
        { n: 2 },
        { n: 3 },
      ]);
    });
  }

  it('would be missed at REPEATABLE READ, and by a fill that does not count', async () => {
    const rewrites: readonly ((statement: Statement) => string)[] = [
      ({ kind, text }) => (kind === 'begin' ? text.replace('READ COMMITTED', 'REPEATABLE READ') : text),
      ({ kind, text }) =>
        kind === 'count'
          ? text.replace(/count\(ctid\)::pg_catalog\.float8 AS inside/, 'abs(3)::pg_catalog.float8 AS inside')
          : text,
    ];
    for (const rewrite of rewrites) {
      await withWorker(test, (database) =>
        withStatements(
          {
            before: ({ kind }) =>
              kind === 'insert'
                ? unhooked(async () => void (await test.sql(`INSERT INTO target VALUES ('${KEY}', 99)`)))
                : undefined,
            rewrite: (statement) => ({ text: rewrite(statement), values: statement.values }),
          },
          () => fill(database, fillRequest(pipeline)),
        ),
      );
      const [row] = await test.sql(`SELECT count(*)::int AS rows FROM target WHERE day = '${KEY}'`);
      assert.deepEqual(row, { rows: 4 }, 'one more than was filled');
      await test.sql(`DELETE FROM target WHERE n = 99`);
    }
  });

  for (const [what, sql, message] of [
    [
      'an ALTER TABLE that runs',
      'ALTER TABLE target ADD COLUMN more int',
      /^Pid \d+, role test_owner, holds a AccessExclusiveLock on public\.target/,
    ],
    ['a CREATE INDEX', 'CREATE INDEX ON target (n)', /holds a ShareLock on public\.target/],
    ['a lock on what it reads', 'LOCK TABLE source IN ACCESS EXCLUSIVE MODE', /55P03.*Another session holds a lock/],
  ] as const) {
    it(`${what}: Conflict that says so, not a hang`, async () => {
      const before = await held();
      await withClient(test.ownerUrl, async (owner) => {
        await owner.query(`BEGIN; ${sql}`);
        await withWorker(test, async (database) => {
          const failure = await failsAs(
            // Sooner than in earnest.
            withStatements({ rewrite: shortTableLock }, () => fill(database, fillRequest(pipeline))),
            'Conflict',
          );
          assert.match(failure.message, message);
        });
        await owner.query('ROLLBACK');
      });
      assert.deepEqual(await held(), before);
    });
  }

  it('an ALTER TABLE that waits behind a fill gets its turn, and the next fill goes by the new columns', async () => {
    await withWorker(test, async (database) => {
      let altering: Promise<unknown> | undefined;
      await withStatements(
        {
          before: async ({ kind }) => {
            if (kind !== 'guard') return;
            altering = unhooked(() => test.sql('ALTER TABLE target ADD COLUMN more int DEFAULT 7'));
            await until('the ALTER TABLE waits', () =>
              unhooked(
                async () =>
                  (
                    await test.sql(`SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'
                      AND relation = 'target'::regclass`)
                  ).length > 0,
              ),
            );
          },
        },
        () => fill(database, fillRequest(pipeline)),
      );
      await altering;
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
    });
    assert.deepEqual(
      await test.sql(`SELECT n, more FROM target WHERE day = '${KEY}' ORDER BY n`),
      [1, 2, 3].map((n) => ({ n, more: 7 })),
    );
  });

  it('a table swapped for another while the lock was awaited: Conflict, nothing written', async () => {
    await withWorker(test, async (database) => {
      await failsAs(
        withStatements(
          {
            after: async ({ kind }) => {
              if (kind === 'lock')
                await unhooked(() => test.sql('ALTER TABLE target RENAME TO old; CREATE TABLE target (LIKE old)'));
            },
          },
          () => fill(database, fillRequest(pipeline)),
        ),
        'Conflict',
      );
    });
    assert.equal((await held('old')).length, 3);
    assert.deepEqual(await held(), []);
  });

  it('a prepared transaction that holds the lock: Conflict that says so', async () => {
    const server = await startPrivatePostgres({
      sync: false,
      settings: { max_prepared_transactions: '2', fsync: 'off' },
    });
    try {
      const database = await openDatabase(server.url(), { fills: 2 });
      try {
        await migrate(database);
        await withClient(server.url(), async (client) => {
          await client.query(`CREATE SCHEMA shop; SET search_path = shop; ${TABLES}`);
          const inShop = sqlPipeline(QUERY.replace('source', 'shop.source'), {
            target: { schema: 'shop', table: 'target' },
          });
          const lock = await lockOf(client, 'shop.target', inShop);
          await client.query('BEGIN');
          await client.query('SELECT pg_advisory_xact_lock($1::int, $2::int)', [lock.space, lock.window]);
          await client.query(`PREPARE TRANSACTION 'forgotten'`);
          const failure = await failsAs(fill(database, fillRequest(inShop)), 'Conflict');
          assert.match(failure.message, /prepared transaction.*pg_prepared_xacts/);
          await client.query(`ROLLBACK PREPARED 'forgotten'`);
          assert.equal((await fill(database, fillRequest(inShop))).rows, 3);
        });
      } finally {
        await database.close();
      }
    } finally {
      await server.stop();
    }
  });

  it('locks whose numbers have the sign bit are found, named and ended', async () => {
    const lock: WindowLock = { space: -5, window: -719_162 };
    const target = { root: 1 };
    assert.ok(
      windowLock({ root: 0x9000_0000 }, { ...fillRequest(pipeline).window, number: lock.window }).space < 0,
      'as an oid beyond 2^31 gives',
    );
    const run = randomUUID();
    await withWorker(test, async (database) => {
      assert.equal(await holderOf(database, target, lock), undefined);
      const holder = new pg.Client({ connectionString: test.url, application_name: `repave ${run}/1 17` });
      const ended = new Promise((resolve) => holder.on('error', resolve));
      await holder.connect();
      try {
        await holder.query('SELECT pg_advisory_lock($1::int, $2::int)', [lock.space, lock.window]);
        const found = await holderOf(database, target, lock);
        assert.match(found?.words ?? '', new RegExp(`^run ${run} \\(pid \\d+, since \\S+Z\\)$`));
        assert.deepEqual([found?.run, found?.grid], [run, false]);
        const mine = fillRequest(pipeline, { run });
        for (const other of [
          { ...lock, space: 5 },
          { ...lock, window: 719_162 },
        ]) {
          assert.equal(await holderOf(database, target, other), undefined);
          assert.equal(await endOverdueHolders(database, other, mine, 18), 0);
        }
        assert.equal(await endOverdueHolders(database, lock, mine, 17), 0, 'its own fence is not an older attempt’s');
        assert.equal(
          await endOverdueHolders(database, lock, fillRequest(pipeline), 18),
          0,
          'another run’s live attempt',
        );
        assert.equal(await endOverdueHolders(database, lock, mine, 18), 1);
        await ended;
      } finally {
        await holder.end();
      }
    });
  });

  it('a fill of one pipeline leaves the rows, the ledger and xmin of another as they are', async () => {
    const other = sqlPipeline(QUERY, { name: 'other', target: { table: 'other' } });
    await test.sql(`CREATE TABLE other (LIKE target)`);
    await withWorker(test, async (database) => {
      for (const key of [KEY, '2024-03-01']) {
        await fill(database, fillRequest(other, { key }));
        await fill(database, fillRequest(pipeline, { key }));
      }
      const seen = async () => ({
        rows: await held('other'),
        ledger: await test.sql(
          `SELECT *, xmin::text FROM repave.partition WHERE pipeline = 'other' OR key <> '${KEY}' ORDER BY pipeline, key`,
        ),
        fills: await fills(test, 'other'),
        neighbours: (await held()).filter(({ day }) => day !== KEY),
      });
      const before = await seen();
      await fill(database, fillRequest(pipeline));
      assert.deepEqual(await seen(), before);
      assert.equal((await ledgerRows(test)).length, 2);
    });
  });
});

/** `look` sets how long the fill's own statements wait for the table. */
function shortTableLock({ kind, text, values }: Statement): { text: string; values: readonly unknown[] } {
  return { text, values: kind === 'look' ? ['200', ...values.slice(1)] : values };
}

async function lockOf(client: pg.Client, table: string, { partition }: typeof pipeline): Promise<WindowLock> {
  const { rows } = await client.query<{ oid: number }>('SELECT $1::regclass::oid::int AS oid', [table]);
  const [row] = rows;
  assert.ok(row);
  return windowLock({ root: row.oid }, fillRequest({ ...pipeline, partition }).window);
}
