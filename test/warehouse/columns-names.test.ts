import assert from 'node:assert/strict';
import { fill } from '../../src/warehouse/fill.js';
import { describePipeline } from '../../src/warehouse/describe.js';
import { registerPipeline, registeredPipelines } from '../../src/warehouse/ledger.js';
import { grantsFor } from '../../src/warehouse/migrate.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';
import { id, NAMES } from '../support/names.js';
import { asSuperuser } from '../support/superuser.js';

describe('names', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql('CREATE TABLE canary (n int)');
  });

  for (const [what, [schema, table, column, other]] of Object.entries(NAMES)) {
    it(`with ${what} work, and do no harm`, async () => {
      const full = `${id(schema)}.${id(table)}`;
      await test.sql(
        `CREATE SCHEMA ${id(schema)}; CREATE TABLE ${full} (${id(column)} timestamp NOT NULL, ${id(other)} int)`,
      );
      const settings = {
        target: { schema, table },
        partition: { column, by: 'day', zone: 'UTC' },
        checks: [
          { kind: 'unique', columns: [column, other] },
          { kind: 'not_null', columns: [other] },
        ],
      } as const;
      const pipelines = [
        sqlPipeline(
          `SELECT :date::timestamp AS ${id(column)}, k AS ${id(other)} FROM generate_series(1, 3) k`,
          settings,
        ),
        typescriptPipeline(({ key }) => [1, 2, 3].map((n) => ({ [other]: n, [column]: key })), settings),
        typescriptPipeline(({ key }) => [1, 2, 3].map((n) => ({ [other]: n, [column]: key })), {
          ...settings,
          columns: [other, column],
        }),
      ];
      for (const grant of grantsFor(test.workerRole, test.name, pipelines)) await asSuperuser(test, grant);
      await withWorker(test, async (database) => {
        for (const pipeline of pipelines) {
          await registerPipeline(database, pipeline);
          assert.deepEqual((await describePipeline(database, pipeline)).problems, []);
          for (let time = 0; time < 2; time++) assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
        }
        assert.equal((await registeredPipelines(database)).length, 1);

        const outside = sqlPipeline(
          `SELECT :date::timestamp - interval '1 day' AS ${id(column)}, 1 AS ${id(other)}`,
          settings,
        );
        assert.match(
          (await failsAs(fill(database, fillRequest(outside)), 'RowsOutsideWindow')).message,
          /1 of 1 row\b/,
        );
        const twice = sqlPipeline(
          `SELECT :date::timestamp AS ${id(column)}, 1 AS ${id(other)} FROM generate_series(1, 2)`,
          settings,
        );
        assert.match((await failsAs(fill(database, fillRequest(twice)), 'CheckFailed')).message, /unique .*1 value/);
      });
      const [rows] = await test.sql(`SELECT count(*)::int AS n, min(${id(column)})::date::text AS day FROM ${full}`);
      assert.deepEqual(rows, { n: 3, day: KEY });
      assert.equal((await fills(test)).length, 6);
      assert.deepEqual(await test.sql('SELECT FROM canary'), []);
    });
  }

  it('of pipelines that would end a statement do no harm', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL)');
    const name = `it's"; DROP TABLE canary; --`;
    await withWorker(test, async (database) => {
      const pipeline = sqlPipeline('SELECT :date::date AS day', { name });
      await registerPipeline(database, pipeline);
      await fill(database, fillRequest(pipeline));
    });
    assert.equal((await fills(test, name)).length, 1);
    assert.deepEqual(await test.sql('SELECT FROM canary'), []);
  });

  it('of keys that would end a statement do no harm, should the calendar let one through', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, k text)');
    const key = `2024-02-29'; DROP TABLE canary; --`;
    await withWorker(test, async (database) => {
      const request = fillRequest(sqlPipeline('SELECT :date::date AS day, :key AS k'));
      await fill(database, { ...request, window: { ...request.window, key } });
    });
    assert.deepEqual(await test.sql('SELECT k FROM target'), [{ k: key }]);
    assert.deepEqual(await test.sql('SELECT FROM canary'), []);
  });
});
