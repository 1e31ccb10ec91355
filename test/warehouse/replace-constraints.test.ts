import assert from 'node:assert/strict';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, withWorker } from '../support/fill.js';

const pipeline = sqlPipeline('SELECT day, n FROM source WHERE day >= :date AND day < :end_date');

describe('constraints of a target', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TABLE source (day date NOT NULL, n int);
      INSERT INTO source SELECT '${KEY}', k FROM generate_series(1, 3) k;
      CREATE TABLE target (day date NOT NULL, n int UNIQUE);
      INSERT INTO target VALUES ('${KEY}', 1), ('${KEY}', 2)`);
  });

  const held = (table: string) => test.sql(`SELECT t.*, xmin::text FROM ${table} t ORDER BY n`);

  for (const action of ['CASCADE', 'SET NULL', 'SET DEFAULT'] as const) {
    it(`refuse a foreign key to it ON DELETE ${action}, and leave the children`, async () => {
      await test.sql(
        `CREATE TABLE child (n int CONSTRAINT child_of REFERENCES target (n) ON DELETE ${action}); INSERT INTO child VALUES (1)`,
      );
      const before = [await held('target'), await held('child')];
      await withWorker(test, async (database) => {
        const failure = await failsAs(fill(database, fillRequest(pipeline)), 'InvalidPipeline');
        assert.match(failure.message, /child_of.*DEFERRABLE INITIALLY DEFERRED/);
      });
      assert.deepEqual([await held('target'), await held('child')], before);
    });
  }

  it('refuse a cascading foreign key to a parent of the table named', async () => {
    await test.sql(`CREATE TABLE parent (day date, n int, PRIMARY KEY (day, n)) PARTITION BY RANGE (day);
      CREATE TABLE leaf PARTITION OF parent DEFAULT;
      CREATE TABLE child (day date, n int, CONSTRAINT child_of FOREIGN KEY (day, n) REFERENCES parent ON DELETE CASCADE)`);
    await withWorker(test, async (database) => {
      for (const table of ['parent', 'leaf']) {
        const failure = await failsAs(
          fill(database, fillRequest({ ...pipeline, target: { table } })),
          'InvalidPipeline',
        );
        assert.match(failure.message, /child_of/);
      }
    });
  });

  it('let a refill pass under a foreign key to it that is DEFERRABLE INITIALLY DEFERRED', async () => {
    await test.sql(
      `CREATE TABLE child (n int REFERENCES target (n) DEFERRABLE INITIALLY DEFERRED); INSERT INTO child VALUES (1), (2)`,
    );
    const before = await held('child');
    await withWorker(test, async (database) => {
      for (let time = 0; time < 2; time++) assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
    });
    assert.deepEqual(await held('child'), before);
  });

  it('fail a refill under one that is not deferrable as DataError, naming it and what to do', async () => {
    await test.sql(
      `CREATE TABLE child (n int CONSTRAINT child_of REFERENCES target (n)); INSERT INTO child VALUES (1)`,
    );
    const before = [await held('target'), await held('child')];
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'DataError');
      assert.match(failure.message, /23503.*constraint "child_of".*DEFERRABLE INITIALLY DEFERRED/);
    });
    assert.deepEqual([await held('target'), await held('child')], before);
  });

  it('fail a fill that leaves a deferred foreign key broken as DataError, naming it, before COMMIT', async () => {
    await test.sql(`CREATE TABLE child (n int CONSTRAINT child_of REFERENCES target (n) DEFERRABLE INITIALLY DEFERRED);
      INSERT INTO child VALUES (1); DELETE FROM source WHERE n = 1`);
    const before = [await held('target'), await held('child')];
    const steps: string[] = [];
    await withWorker(test, async (database) => {
      const request = fillRequest(pipeline, { onStep: (step) => steps.push(step) });
      const failure = await failsAs(fill(database, request), 'DataError');
      assert.match(failure.message, /23503.*constraint "child_of"/);
    });
    assert.ok(!steps.includes('commit'), steps.join());
    assert.deepEqual([await held('target'), await held('child')], before);
    assert.deepEqual(await fills(test), []);
  });

  it('fail a fill whose rows break a deferred foreign key of the target as DataError, naming it', async () => {
    await test.sql(`CREATE TABLE kind (n int PRIMARY KEY); INSERT INTO kind VALUES (1), (2);
      ALTER TABLE target ADD CONSTRAINT of_kind FOREIGN KEY (n) REFERENCES kind DEFERRABLE INITIALLY DEFERRED`);
    const before = await held('target');
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'DataError');
      assert.match(failure.message, /23503.*constraint "of_kind"/);
    });
    assert.deepEqual(await held('target'), before);
  });

  it('keep old rows and ledger where the INSERT fails after the DELETE, and a retry works', async () => {
    await test.sql('ALTER TABLE target ADD CONSTRAINT small CHECK (n < 3) NOT VALID');
    const before = await held('target');
    await withWorker(test, async (database) => {
      const steps: string[] = [];
      const failure = await failsAs(
        fill(database, fillRequest(pipeline, { onStep: (step) => steps.push(step) })),
        'DataError',
      );
      assert.match(failure.message, /23514.*constraint "small"/);
      assert.ok(steps.includes('insert'), 'the DELETE came first');
      assert.deepEqual(await held('target'), before);
      assert.deepEqual(await fills(test), []);
      assert.deepEqual(await test.sql('SELECT FROM repave.partition'), []);

      await test.sql('ALTER TABLE target DROP CONSTRAINT small');
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
    });
  });

  it('name the missing partition of a partitioned target', async () => {
    await test.sql(`CREATE TABLE parted (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE parted_2023 PARTITION OF parted FOR VALUES FROM ('2023-01-01') TO ('2024-01-01')`);
    await withWorker(test, async (database) => {
      const failure = await failsAs(
        fill(database, fillRequest({ ...pipeline, target: { table: 'parted' } })),
        'DataError',
      );
      assert.match(failure.message, /23514.*"public\.parted".*no partition.*create/i);
    });
  });
});
