import assert from 'node:assert/strict';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';
import { setRoleDefaults } from '../support/superuser.js';

const DAY = '2024-02-29';
const NEXT = '2024-03-01';

const literal = (day: string | null): string => `(${day === null ? 'NULL' : `'${day}'`}::timestamp, 7)`;

describe('the window of a fill', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
  });

  for (const type of ['date', 'timestamp', 'timestamptz'] as const) {
    it(`is the same for a ${type} column under a session in Asia/Tokyo`, async () => {
      await setRoleDefaults(test, { timezone: `'Asia/Tokyo'` });
      await test.sql(`CREATE TABLE source (at timestamp NOT NULL);
        INSERT INTO source VALUES ('${DAY} 00:00:00'), ('${DAY} 21:30:00'), ('${DAY} 23:59:59.999999'), ('${NEXT} 00:00:00')`);
      await test.sql(`CREATE TABLE target (at ${type} NOT NULL)`);
      const column = { date: 'at::date', timestamp: 'at', timestamptz: `at AT TIME ZONE 'UTC'` }[type];
      const pipeline = sqlPipeline(
        `SELECT ${column} AS at FROM source WHERE at >= :start AT TIME ZONE 'UTC' AND at < :end AT TIME ZONE 'UTC'`,
        { partition: { column: 'at', by: 'day', zone: 'UTC' } },
      );
      await withWorker(test, async (database) => {
        for (let time = 0; time < 2; time++) {
          assert.equal((await fill(database, fillRequest(pipeline, { key: DAY }))).rows, 3);
          assert.equal((await fill(database, fillRequest(pipeline, { key: NEXT }))).rows, 1);
        }
      });
      const held = await test.sql<{ rows: number; days: string[] }>(
        `SELECT count(*)::int AS rows, array_agg(DISTINCT (at AT TIME ZONE 'UTC')::date::text) AS days FROM (SELECT at::timestamp AT TIME ZONE 'UTC' AS at FROM target) t`,
      );
      assert.deepEqual(held, [{ rows: 4, days: [DAY, NEXT] }]);
    });
  }

  it('makes ts::date the local date of the pipeline’s zone, whatever the role’s TimeZone', async () => {
    await setRoleDefaults(test, { timezone: `'Asia/Tokyo'` });
    await test.sql(`CREATE TABLE source (at timestamptz NOT NULL); CREATE TABLE target (day date NOT NULL, hours int)`);
    await test.sql(
      `INSERT INTO source SELECT generate_series('2024-03-09T00:00Z'::timestamptz, '2024-03-12T00:00Z', '1 hour')`,
    );
    const pipeline = sqlPipeline(
      `SELECT at::date AS day, count(*) AS hours FROM source WHERE at >= :start AND at < :end GROUP BY 1`,
      { partition: { column: 'day', by: 'day', zone: 'America/New_York' } },
    );
    await withWorker(test, (database) => fill(database, fillRequest(pipeline, { key: '2024-03-10' })));
    assert.deepEqual(await test.sql('SELECT day::text, hours FROM target'), [{ day: '2024-03-10', hours: 23 }]);
  });

  for (const kind of ['sql', 'typescript'] as const) {
    it(`fails a ${kind} fill whose rows lie outside it, with how many and which, and nothing grows`, async () => {
      await test.sql(
        `CREATE TABLE target (day timestamp, n int); INSERT INTO target VALUES ('${DAY}', 1), ('2023-01-01', 2)`,
      );
      const days = [null, '-infinity', 'infinity', `${NEXT} 00:00:00`, '2024-02-28 23:59:59.999999', `${DAY} 12:00:00`];
      const pipeline =
        kind === 'sql'
          ? sqlPipeline(`SELECT day, n FROM (VALUES ${days.map(literal).join(', ')}) v(day, n)`)
          : typescriptPipeline(() => days.map((day) => ({ day, n: 7 })));
      await withWorker(test, async (database) => {
        for (let time = 0; time < 2; time++) {
          const failure = await failsAs(fill(database, fillRequest(pipeline)), 'RowsOutsideWindow');
          assert.match(failure.message, /\b5 of 6 rows\b/);
          assert.match(failure.message, /1 with NULL/);
          assert.match(failure.message, /from -infinity to infinity/);
        }
      });
      assert.deepEqual(await test.sql('SELECT day::text, n FROM target ORDER BY day'), [
        { day: '2023-01-01 00:00:00', n: 2 },
        { day: `${DAY} 00:00:00`, n: 1 },
      ]);
      assert.deepEqual(await fills(test), []);
    });
  }

  it('names the smallest and the largest of the rows outside', async () => {
    await test.sql('CREATE TABLE target (day date)');
    const pipeline = sqlPipeline(`SELECT :date::date + k AS day FROM generate_series(-3, 9) k`);
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'RowsOutsideWindow');
      assert.match(failure.message, /\b12 of 13 rows\b.*\[2024-02-29, 2024-03-01\).*from 2024-02-26 to 2024-03-09/);
    });
  });

  it('counts NULL alone where nothing else is outside', async () => {
    await test.sql('CREATE TABLE target (day date)');
    const pipeline = sqlPipeline(`SELECT NULL::date AS day FROM generate_series(1, 3)`);
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'RowsOutsideWindow');
      assert.match(failure.message, /\b3 of 3 rows\b.*\(3 with NULL\)/);
    });
  });

  it('leaves rows without a time, and outside, as they are', async () => {
    await test.sql(`CREATE TABLE target (day timestamp, n int);
      INSERT INTO target VALUES (NULL, 1), ('infinity', 2), ('-infinity', 3), ('2024-02-28 23:59:59.999999', 4), ('${NEXT}', 5), ('${DAY}', 6)`);
    const pipeline = sqlPipeline(`SELECT :date::timestamp AS day, 7 AS n`);
    const before = await test.sql(`SELECT n, xmin::text FROM target WHERE n <> 6 ORDER BY n`);
    await withWorker(test, async (database) => {
      const outcome = await fill(database, fillRequest(pipeline));
      assert.equal(outcome.deleted, 1);
    });
    assert.deepEqual(await test.sql(`SELECT n, xmin::text FROM target WHERE n <> 7 ORDER BY n`), before);
  });
});
