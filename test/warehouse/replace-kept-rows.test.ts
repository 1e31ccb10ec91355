import assert from 'node:assert/strict';
import type { SqlPipeline, TypeScriptPipeline } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { setRoleDefaults } from '../support/superuser.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';

const NEXT = '2024-03-01';

/** The same three rows by each kind of pipeline. */
const PIPELINES: Readonly<Record<string, SqlPipeline | TypeScriptPipeline>> = {
  sql: sqlPipeline('SELECT day, n FROM source WHERE day >= :date AND day < :end_date'),
  typescript: typescriptPipeline(({ key }) => [1, 2, 3].map((n) => ({ day: key, n }))),
};

describe('a target whose policies, triggers or rules come between', () => {
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
      CREATE TABLE target (day date NOT NULL, n int);
      INSERT INTO target VALUES ('${KEY}', 10), ('${KEY}', 20), ('${NEXT}', 30)`);
  });

  /** Rows of the target with what wrote them: equal only where nothing has touched one. */
  const held = () => test.sql('SELECT day::text, n, xmin::text FROM target ORDER BY day, n');

  const trigger = (timing: string, body: string, more = '') =>
    test.sql(`CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
      CREATE ${more} TRIGGER act ${timing} ON target ${more ? 'DEFERRABLE INITIALLY DEFERRED' : ''} FOR EACH ROW EXECUTE FUNCTION act()`);

  for (const [kind, pipeline] of Object.entries(PIPELINES)) {
    const refused = async (type: 'PermissionDenied' | 'SchemaMismatch' | 'RowsOutsideWindow', message: RegExp) => {
      const before = await held();
      await withWorker(test, async (database) => {
        for (let time = 0; time < 2; time++) {
          const failure = await failsAs(fill(database, fillRequest(pipeline)), type);
          assert.match(failure.message, message);
        }
      });
      assert.deepEqual(await held(), before);
      assert.deepEqual(await fills(test), []);
    };

    describe(`filled from ${kind}`, () => {
      it('with a policy that hides rows: PermissionDenied names row-level security, and nothing changes', async () => {
        await test.sql(`ALTER TABLE target ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON target USING (n > 15)`);
        await refused('PermissionDenied', /row-level security.*target/);
      });

      it('with a BEFORE DELETE trigger that keeps rows: SchemaMismatch, old rows', async () => {
        await trigger('BEFORE DELETE', 'RETURN NULL;');
        await refused('SchemaMismatch', /trigger of public\.target keeps rows/);
      });

      it('with a rule that deletes nothing: SchemaMismatch names it, old rows', async () => {
        await test.sql('CREATE RULE keep AS ON DELETE TO target DO INSTEAD NOTHING');
        await refused('SchemaMismatch', /rule.*keep/);
      });

      it('with a rule that inserts nothing: SchemaMismatch names it, old rows', async () => {
        await test.sql('CREATE RULE lose AS ON INSERT TO target DO INSTEAD NOTHING');
        await refused('SchemaMismatch', /rule.*lose/);
      });

      it('with a BEFORE INSERT trigger that moves a row to the next day: RowsOutsideWindow, old rows', async () => {
        await trigger('BEFORE INSERT', 'IF NEW.n = 2 THEN NEW.day := NEW.day + 1; END IF; RETURN NEW;');
        await refused('RowsOutsideWindow', new RegExp(`\\b1 of 3 rows\\b.*from ${NEXT} to ${NEXT}`));
      });

      it('with a BEFORE INSERT trigger that drops a row: SchemaMismatch, old rows', async () => {
        await trigger('BEFORE INSERT', 'IF NEW.n = 2 THEN RETURN NULL; END IF; RETURN NEW;');
        await refused('SchemaMismatch', /\b1 of the 3 rows\b.*dropped/);
      });

      it('with an AFTER INSERT trigger that deletes a row again: SchemaMismatch, old rows', async () => {
        await trigger('AFTER INSERT', 'DELETE FROM target WHERE n = 2; RETURN NULL;');
        await test.sql('ALTER FUNCTION act() SECURITY DEFINER');
        await refused('SchemaMismatch', /\b1 of the 3 rows\b.*dropped/);
      });

      it('with a deferred trigger that adds a row outside the window: RowsOutsideWindow, old rows', async () => {
        await trigger(
          'AFTER INSERT',
          `IF NEW.n = 2 THEN INSERT INTO target VALUES (NEW.day + 9, 99); END IF; RETURN NULL;`,
          'CONSTRAINT',
        );
        await refused('RowsOutsideWindow', /\b1 row\b.*beside.*from 2024-03-09 to 2024-03-09/);
      });

      it('with a trigger that adds a row outside the window in a subtransaction: RowsOutsideWindow, old rows', async () => {
        await trigger(
          'AFTER INSERT',
          `IF NEW.n = 2 THEN BEGIN INSERT INTO target VALUES (NEW.day - 1, 99); EXCEPTION WHEN unique_violation THEN NULL; END; END IF; RETURN NULL;`,
        );
        await refused('RowsOutsideWindow', /\b1 row\b.*from 2024-02-28 to 2024-02-28/);
      });

      it('with a DELETE trigger that moves old rows out of the window: RowsOutsideWindow, old rows', async () => {
        await trigger('AFTER DELETE', `INSERT INTO target VALUES (OLD.day - 1, OLD.n); RETURN NULL;`);
        await refused('RowsOutsideWindow', /\b2 rows\b.*from 2024-02-28 to 2024-02-28/);
      });

      it('with a trigger that deletes rows of another window: SchemaMismatch, and they stand', async () => {
        await trigger('AFTER INSERT', `DELETE FROM target WHERE day = NEW.day + 1; RETURN NULL;`);
        await refused('SchemaMismatch', /deleted 1 row of public\.target beside those/);
      });

      it('with triggers that only look or fill in a column: filled', async () => {
        await trigger('BEFORE INSERT', `NEW.n := NEW.n * 100; RETURN NEW;`);
        await withWorker(test, async (database) => {
          const outcome = await fill(database, fillRequest(pipeline));
          assert.deepEqual([outcome.deleted, outcome.rows], [2, 3]);
        });
        const rows = await test.sql(`SELECT n FROM target WHERE day = '${KEY}' ORDER BY n`);
        assert.deepEqual(rows, [{ n: 100 }, { n: 200 }, { n: 300 }]);
      });

      it('with an AFTER trigger that deletes its own row and inserts it anew: filled', async () => {
        const anew = 'DELETE FROM target WHERE n = NEW.n; INSERT INTO target VALUES (NEW.day, -NEW.n);';
        await trigger('AFTER INSERT', `IF NEW.n > 0 THEN ${anew} END IF; RETURN NULL;`);
        await test.sql('ALTER FUNCTION act() SECURITY DEFINER');
        await withWorker(test, async (database) => {
          assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
        });
      });

      it('with an AFTER trigger that moves its own row to another part of the table: filled', async () => {
        await test.sql(`DROP TABLE target; CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (n);
          CREATE TABLE below PARTITION OF target FOR VALUES FROM (MINVALUE) TO (0);
          CREATE TABLE above PARTITION OF target FOR VALUES FROM (0) TO (MAXVALUE)`);
        await trigger(
          'AFTER INSERT',
          'IF NEW.n > 0 THEN UPDATE target SET n = -n WHERE n = NEW.n; END IF; RETURN NULL;',
        );
        await test.sql('ALTER FUNCTION act() SECURITY DEFINER');
        await withWorker(test, async (database) => {
          assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
        });
      });

      it('with an AFTER trigger that rewrites its own row: filled', async () => {
        await trigger('AFTER INSERT', 'UPDATE target SET n = -n WHERE n = NEW.n; RETURN NULL;');
        await test.sql('ALTER FUNCTION act() SECURITY DEFINER');
        await withWorker(test, async (database) => {
          assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
        });
      });
    });
  }

  it('are seen as well where the server counts no rows', async () => {
    await setRoleDefaults(test, { track_counts: 'off' });
    await trigger('AFTER DELETE', `INSERT INTO target VALUES (OLD.day - 1, OLD.n); RETURN NULL;`);
    const before = await held();
    await withWorker(test, async (database) => {
      for (const query of ['SELECT day, n FROM source', 'SELECT day, n FROM source WHERE false']) {
        const failure = await failsAs(fill(database, fillRequest(sqlPipeline(query))), 'RowsOutsideWindow');
        assert.match(failure.message, /\b2 rows\b.*from 2024-02-28 to 2024-02-28/);
      }
      await test.sql('DROP TRIGGER act ON target');
      assert.deepEqual(await held(), before);
      assert.equal((await fill(database, fillRequest(sqlPipeline('SELECT day, n FROM source')))).rows, 3);
    });
  });

  it('counts what a query gives, whatever its shape, where a trigger may drop rows', async () => {
    await trigger('BEFORE INSERT', 'RETURN NEW;');
    const shapes: Readonly<Record<string, number>> = {
      'SELECT day, n FROM source': 3,
      'SELECT day, n FROM source WHERE false': 0,
      'SELECT day, n FROM source ORDER BY n LIMIT 2': 2,
      'SELECT :date::date AS day, 1 AS n': 1,
      'SELECT day, sum(n)::int AS n FROM source GROUP BY day': 1,
      'SELECT day, n FROM source UNION ALL SELECT :date, 4': 4,
      'WITH a AS MATERIALIZED (SELECT * FROM source), b AS (SELECT max(n) AS m FROM a) SELECT a.day, a.n FROM a, b WHERE a.n < b.m': 2,
      'SELECT day, (SELECT count(*)::int FROM source s WHERE s.n <= source.n) AS n FROM source': 3,
      'SELECT day, generate_series(1, n) AS n FROM source -- end': 6,
    };
    await withWorker(test, async (database) => {
      for (const [query, rows] of Object.entries(shapes)) {
        assert.equal((await fill(database, fillRequest(sqlPipeline(query)))).rows, rows, query);
      }
    });
  });

  it('hides nothing of the source behind a policy: PermissionDenied, nothing changes', async () => {
    await test.sql(`ALTER TABLE source ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON source USING (n > 1)`);
    const before = await held();
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(PIPELINES.sql!)), 'PermissionDenied');
      assert.match(failure.message, /row-level security.*source/);
    });
    assert.deepEqual(await held(), before);
  });

  it('of a query whose function writes into it outside the window: RowsOutsideWindow, old rows', async () => {
    await test.sql(
      `CREATE FUNCTION stray() RETURNS int LANGUAGE sql AS $$ INSERT INTO target VALUES ('2020-01-01', 0) RETURNING n $$`,
    );
    const before = await held();
    await withWorker(test, async (database) => {
      const pipeline = sqlPipeline('SELECT :date::date AS day, stray() AS n');
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'RowsOutsideWindow');
      assert.match(failure.message, /from 2020-01-01 to 2020-01-01/);
    });
    assert.deepEqual(await held(), before);
  });
});
