import assert from 'node:assert/strict';
import { targetHealth } from '../../src/warehouse/target-health.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { sqlPipeline, until, withWorker } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';

const pipeline = sqlPipeline('SELECT :date::date AS day');

describe('how a target stands with VACUUM', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(() => test.drop());
  beforeEach(() => emptyDatabase(test));

  const health = (target = pipeline.target) => withWorker(test, (database) => targetHealth(database, { target }));
  /** As ANALYZE would have found it. */
  const estimate = (table: string, rows: number) =>
    asSuperuser(test, `UPDATE pg_class SET reltuples = ${rows} WHERE oid = '${table}'::regclass`);

  it('is unknown where the target is not there', async () => {
    assert.equal(await health(), undefined);
  });

  it('counts rows that are dead and rows that are estimated', async () => {
    // Autovacuum, which may come at any time, has nothing to do.
    await test.sql(`CREATE TABLE target (day date) WITH (autovacuum_enabled = on, autovacuum_vacuum_threshold = 1000000,
                                                         autovacuum_analyze_threshold = 1000000);
      INSERT INTO target SELECT '2024-02-29' FROM generate_series(1, 100)`);
    // In a session that ends, and so has its statistics counted at once.
    await asSuperuser(test, 'DELETE FROM target');
    await until('the server has counted', async () => (await health())?.deadRows === 100);
    await estimate('target', 250);
    const found = await health();
    assert.equal(found?.target, 'public.target');
    assert.deepEqual([found.tables, found.estimatedRows, found.scaleFactor, found.problem], [1, 250, 0.2, undefined]);
  });

  it('names a large table that has the server’s settings, with the statement to run, which mends it', async () => {
    await test.sql(
      `CREATE SCHEMA "Mart"; GRANT USAGE ON SCHEMA "Mart" TO ${test.workerRole}; CREATE TABLE "Mart"."Sales" (day date)`,
    );
    const target = { schema: 'Mart', table: 'Sales' };
    await estimate('"Mart"."Sales"', 1_000_000);
    assert.equal((await health(target))?.problem, undefined);
    await estimate('"Mart"."Sales"', 5_000_000);
    const found = await health(target);
    assert.match(found?.problem ?? '', /^"Mart"\."Sales" holds about 5000000 rows .* of 0\.2: about 1000000 rows/);
    assert.deepEqual(found?.statements, [
      'ALTER TABLE "Mart"."Sales" SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);',
    ]);
    for (const statement of found.statements) await test.sql(statement);
    const mended = await health(target);
    assert.deepEqual([mended?.problem, mended?.scaleFactor, mended?.statements], [undefined, 0.02, []]);
  });

  it('looks at each table of a partitioned one: settings are theirs', async () => {
    await test.sql(`CREATE TABLE target (day date) PARTITION BY RANGE (day);
      CREATE TABLE t2023 PARTITION OF target FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
      CREATE TABLE t2024 PARTITION OF target FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (day);
      CREATE TABLE leaf PARTITION OF t2024 DEFAULT`);
    await estimate('t2023', 2_000_000);
    await estimate('leaf', 3_000_000);
    const found = await health();
    assert.deepEqual([found?.target, found?.tables, found?.estimatedRows], ['public.target', 2, 5_000_000]);
    assert.match(found?.problem ?? '', /^public\.leaf \(and 1 more of public\.target\) holds about 3000000 rows/);
    for (const statement of found?.statements ?? []) await test.sql(statement);
    assert.equal((await health())?.problem, undefined);
  });

  it('says where autovacuum is off', async () => {
    await test.sql('CREATE TABLE target (day date) WITH (autovacuum_enabled = off)');
    const found = await health();
    assert.match(found?.problem ?? '', /^Autovacuum is off for public\.target/);
    for (const statement of found?.statements ?? []) await test.sql(statement);
    assert.equal((await health())?.problem, undefined);
  });
});
