import assert from 'node:assert/strict';
import type { TypeScriptPipeline } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';

describe('a query that reads its own target', () => {
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
      INSERT INTO source VALUES ('${KEY}', 1);
      CREATE TABLE target (day date NOT NULL, n int);
      INSERT INTO target VALUES ('${KEY}', 10), ('2024-02-28', 20)`);
  });

  const held = (table = 'target') => test.sql(`SELECT day::text, n, xmin::text FROM ${table} ORDER BY day, n`);

  const refused = async (query: string, table = 'target') => {
    const before = await held(table);
    await withWorker(test, async (database) => {
      const failure = await failsAs(
        fill(database, fillRequest(sqlPipeline(query, { target: { table } }))),
        'InvalidPipeline',
      );
      assert.match(failure.message, /reads its own target public\./);
    });
    assert.deepEqual(await held(table), before);
    assert.deepEqual(await fills(test), []);
  };

  const allowed = async (pipeline: ReturnType<typeof sqlPipeline> | TypeScriptPipeline, rows = 1) => {
    await withWorker(test, async (database) => {
      for (let time = 0; time < 2; time++) assert.equal((await fill(database, fillRequest(pipeline))).rows, rows);
    });
  };

  it('through a view is refused', async () => {
    await test.sql('CREATE VIEW seen AS SELECT * FROM target');
    await refused('SELECT :date::date AS day, count(*) AS n FROM seen');
  });

  it('through a view of a view is refused, though it gives no row', async () => {
    await test.sql(
      'CREATE VIEW seen AS SELECT * FROM target; CREATE VIEW seen_again AS SELECT * FROM seen WHERE n > 1000',
    );
    await refused('SELECT day, n FROM seen_again');
  });

  it('through a view is refused where the target has triggers, which may read it', async () => {
    await test.sql(`CREATE VIEW seen AS SELECT * FROM target;
      CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM count(*) FROM target; RETURN NULL; END $$;
      CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
    await refused('SELECT :date::date AS day, count(*) AS n FROM seen');
    await allowed(sqlPipeline('SELECT day, n FROM source WHERE day = :date'));
  });

  for (const language of ['sql', 'plpgsql'] as const) {
    for (const volatility of ['VOLATILE', 'STABLE'] as const) {
      it(`through a ${volatility} ${language} function is refused`, async () => {
        const body = { sql: 'SELECT count(*) FROM target', plpgsql: 'BEGIN RETURN (SELECT count(*) FROM target); END' }[
          language
        ];
        await test.sql(`CREATE FUNCTION total() RETURNS bigint LANGUAGE ${language} ${volatility} AS $$ ${body} $$`);
        await refused('SELECT :date::date AS day, total() AS n');
      });
    }
  }

  it('through a view of another part of a partitioned target is refused', async () => {
    await test.sql(`CREATE TABLE parent (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE part_a PARTITION OF parent FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
      CREATE TABLE part_b PARTITION OF parent DEFAULT;
      CREATE VIEW seen AS SELECT * FROM part_b`);
    await refused('SELECT :date::date AS day, count(*) AS n FROM seen', 'parent');
    await refused('SELECT :date::date AS day, count(*) AS n FROM seen', 'part_a');
  });

  describe('is not seen in one that does not:', () => {
    it('a view and functions of other tables', async () => {
      await test.sql(`CREATE VIEW seen AS SELECT * FROM source;
        CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM source); END $$`);
      await allowed(sqlPipeline('SELECT day, total() AS n FROM seen WHERE day = :date'));
    });

    it('a partitioned target, named by its parent or its part, with checks', async () => {
      await test.sql(`CREATE TABLE parent (day date NOT NULL, n int) PARTITION BY RANGE (day);
        CREATE TABLE part_a PARTITION OF parent FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
        CREATE TABLE part_b PARTITION OF parent DEFAULT`);
      for (const table of ['parent', 'part_a']) {
        await allowed(
          sqlPipeline('SELECT day, n FROM source WHERE day = :date', {
            target: { table },
            name: table,
            checks: [{ kind: 'unique', columns: ['n'] }],
          }),
        );
      }
    });

    it('a target with foreign keys to it, of it and in itself', async () => {
      await test.sql(`CREATE TABLE kind (n int PRIMARY KEY); INSERT INTO kind VALUES (1);
        CREATE TABLE keyed (day date NOT NULL, n int UNIQUE REFERENCES kind, of int REFERENCES keyed (n) DEFERRABLE INITIALLY DEFERRED);
        CREATE TABLE child (n int REFERENCES keyed (n) DEFERRABLE INITIALLY DEFERRED);
        INSERT INTO keyed VALUES ('${KEY}', 1, 1); INSERT INTO child VALUES (1)`);
      await allowed(
        sqlPipeline('SELECT day, n, n AS of FROM source WHERE day = :date', { target: { table: 'keyed' } }),
      );
    });

    it('a target with an exclusion constraint, a generated and an identity column', async () => {
      await test.sql(`CREATE TABLE full_of (day date NOT NULL, n int, id int GENERATED ALWAYS AS IDENTITY,
          twice int GENERATED ALWAYS AS (n * 2) STORED, EXCLUDE USING btree (n WITH =))`);
      await allowed(sqlPipeline('SELECT day, n FROM source WHERE day = :date', { target: { table: 'full_of' } }));
    });

    it('a TypeScript pipeline', async () => {
      await allowed(typescriptPipeline(({ key }) => [{ day: key, n: 1 }]));
    });
  });
});
