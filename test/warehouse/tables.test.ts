import assert from 'node:assert/strict';
import { fill } from '../../src/warehouse/fill.js';
import { describePipeline } from '../../src/warehouse/describe.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { unhooked, withStatements } from '../support/statements.js';

const QUERY = 'SELECT day, n FROM source WHERE day >= :date AND day < :end_date';
const query = sqlPipeline(QUERY);

describe('tables that are not plain', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(
      `CREATE TABLE source (day date NOT NULL, n int); INSERT INTO source VALUES ('${KEY}', 1), ('${KEY}', 2)`,
    );
  });

  /** What makes a target of each kind, and what is said of it. */
  const REFUSED: Readonly<Record<string, readonly [sql: string, message: RegExp]>> = {
    'an UNLOGGED table': ['CREATE UNLOGGED TABLE target (day date, n int)', /UNLOGGED.*SET LOGGED/],
    'a partitioned table with an UNLOGGED part': [
      `CREATE TABLE target (day date, n int) PARTITION BY RANGE (day);
       CREATE UNLOGGED TABLE part PARTITION OF target DEFAULT`,
      /UNLOGGED/,
    ],
    'a view': ['CREATE TABLE below (day date, n int); CREATE VIEW target AS SELECT * FROM below', /is a view/],
    'a materialized view': ['CREATE MATERIALIZED VIEW target AS SELECT * FROM source', /is a view/],
    'a sequence': ['CREATE SEQUENCE target', /is no table/],
    'a parent of inheritance': [
      'CREATE TABLE target (day date, n int); CREATE TABLE child () INHERITS (target)',
      /inheritance.*declarative partitioning/,
    ],
    'a child of inheritance': [
      'CREATE TABLE above (day date, n int); CREATE TABLE target () INHERITS (above)',
      /inheritance.*declarative partitioning/,
    ],
  };
  for (const [what, [sql, message]] of Object.entries(REFUSED)) {
    it(`refuses ${what}, with the reason`, async () => {
      await test.sql(sql);
      await withWorker(test, async (database) => {
        const failure = await failsAs(fill(database, fillRequest(query)), 'InvalidPipeline');
        assert.match(failure.message, message);
        await failsAs(registerPipeline(database, query), 'InvalidPipeline');
        const described = await describePipeline(database, query);
        assert.match(described.problems.map((problem) => problem.message).join(), message);
      });
      assert.deepEqual(await fills(test), []);
    });
  }

  it('refuses a temporary table', async () => {
    await withWorker(test, async (database) => {
      const failure = await failsAs(
        withStatements(
          {
            before: ({ kind, client }) =>
              kind === 'begin'
                ? unhooked(
                    async () =>
                      void (await client.query('CREATE TEMPORARY TABLE IF NOT EXISTS target (day date, n int)')),
                  )
                : undefined,
          },
          () => fill(database, fillRequest(query)),
        ),
        'InvalidPipeline',
      );
      assert.match(failure.message, /temporary/);
    });
  });

  it('refuses a foreign table, and a partitioned one with a foreign part', async () => {
    await asSuperuser(
      test,
      `CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
       CREATE FOREIGN TABLE public.target (day date, n int) SERVER files OPTIONS (filename '/dev/null');
       CREATE TABLE public.parted (day date, n int) PARTITION BY RANGE (day);
       CREATE FOREIGN TABLE public.part PARTITION OF public.parted DEFAULT SERVER files OPTIONS (filename '/dev/null');
       GRANT ALL ON public.target, public.parted, public.part TO ${test.workerRole}`,
    );
    await withWorker(test, async (database) => {
      for (const table of ['target', 'parted']) {
        const failure = await failsAs(fill(database, fillRequest({ ...query, target: { table } })), 'InvalidPipeline');
        assert.match(failure.message, /foreign table.*not commit together/);
      }
    });
  });

  it('says that a target is not there, and what was searched', async () => {
    await withWorker(test, async (database) => {
      for (const target of [{ table: 'target' }, { schema: 'nowhere', table: 'source' }]) {
        const failure = await failsAs(fill(database, fillRequest({ ...query, target })), 'SchemaMismatch');
        assert.match(failure.message, /is not there/);
      }
    });
  });

  it('refuses a partition column that is not there, or of another type, naming both', async () => {
    await test.sql('CREATE TABLE target (day date, n int, at text, daytime time)');
    await withWorker(test, async (database) => {
      const by = (column: string) => ({ ...query, partition: { ...query.partition, column } });
      const absent = await failsAs(fill(database, fillRequest(by('sale_date'))), 'SchemaMismatch');
      assert.match(absent.message, /"sale_date".*day, n, at, daytime/);
      for (const column of ['n', 'at', 'daytime']) {
        const other = await failsAs(fill(database, fillRequest(by(column))), 'InvalidPipeline');
        assert.match(other.message, new RegExp(`"${column}".*(integer|text|time).*date, timestamp or timestamptz`));
      }
    });
  });

  it('takes a domain over a date for the partition column', async () => {
    await test.sql('CREATE DOMAIN sale_day AS date NOT NULL; CREATE TABLE target (day sale_day, n int)');
    await withWorker(test, async (database) => {
      for (let time = 0; time < 2; time++) assert.equal((await fill(database, fillRequest(query))).rows, 2);
    });
  });

  describe('a partitioned table', () => {
    beforeEach(async () => {
      await test.sql(`CREATE TABLE parent (day date NOT NULL, n int) PARTITION BY RANGE (day);
        CREATE TABLE year PARTITION OF parent FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (day);
        CREATE TABLE leaf PARTITION OF year FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
        CREATE TABLE rest PARTITION OF year DEFAULT;
        INSERT INTO parent VALUES ('${KEY}', 9), ('2024-05-01', 9)`);
    });

    for (const kind of ['sql', 'typescript'] as const) {
      it(`is filled from ${kind} by its parent and by its leaf alike`, async () => {
        const pipeline = kind === 'sql' ? query : typescriptPipeline(({ key }) => [1, 2].map((n) => ({ day: key, n })));
        await withWorker(test, async (database) => {
          let deleted = 1;
          for (const table of ['parent', 'year', 'leaf', 'parent']) {
            const outcome = await fill(database, fillRequest({ ...pipeline, target: { table } }));
            assert.deepEqual([outcome.deleted, outcome.rows], [deleted, 2]);
            deleted = 2;
          }
        });
        assert.deepEqual(await test.sql('SELECT day::text, n FROM parent ORDER BY day, n'), [
          { day: KEY, n: 1 },
          { day: KEY, n: 2 },
          { day: '2024-05-01', n: 9 },
        ]);
      });
    }

    it('and its leaf are one target: a fill of one waits for the other’s', async () => {
      const locks: unknown[] = [];
      await withWorker(test, async (database) => {
        for (const table of ['parent', 'year', 'leaf']) {
          await withStatements(
            {
              before: ({ kind }) =>
                kind === 'guard'
                  ? unhooked(async () => {
                      locks.push(
                        await test.sql(
                          `SELECT classid, objid, objsubid, mode FROM pg_locks WHERE locktype = 'advisory' AND granted
                            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY objsubid`,
                        ),
                      );
                    })
                  : undefined,
            },
            () => fill(database, fillRequest({ ...query, target: { table } })),
          );
        }
        const other = sqlPipeline(QUERY, { target: { table: 'leaf' }, name: 'other' });
        await withStatements(
          {
            after: async ({ kind }) => {
              if (kind !== 'lock') return;
              const busy = await failsAs(
                unhooked(() => fill(database, fillRequest(other))),
                'Conflict',
              );
              assert.match(busy.message, /held by run \S+ of \S+ \S+ \(pid \d+, since \S+Z\)/);
            },
          },
          () => fill(database, fillRequest({ ...query, target: { table: 'parent' } })),
        );
      });
      assert.equal(locks.length, 3);
      assert.deepEqual(locks[1], locks[0]);
      assert.deepEqual(locks[2], locks[0]);
    });

    it('and its leaf are one target: two pipelines may not have them', async () => {
      await withWorker(test, async (database) => {
        await registerPipeline(database, { ...query, name: 'by_parent', target: { table: 'parent' } });
        const failure = await failsAs(
          registerPipeline(database, { ...query, name: 'by_leaf', target: { table: 'leaf' } }),
          'InvalidPipeline',
        );
        assert.match(failure.message, /public\.parent is already the target of by_parent/);
        const filled = await failsAs(
          fill(database, fillRequest({ ...query, name: 'by_leaf', target: { table: 'leaf' } })),
          'InvalidPipeline',
        );
        assert.match(filled.message, /by_parent/);
      });
    });

    it('rows of the window that belong into another leaf are refused there', async () => {
      await withWorker(test, async (database) => {
        await test.sql(`INSERT INTO source VALUES ('2024-05-01', 1)`);
        const failure = await failsAs(
          fill(database, fillRequest({ ...query, target: { table: 'leaf' } }, { key: '2024-05-01' })),
          'DataError',
        );
        assert.match(failure.message, /23514.*"public\.leaf"/);
      });
    });
  });

  it('names the missing REPLICA IDENTITY of a published table, and fills once it is there', async () => {
    await test.sql(`CREATE TABLE target (day date NOT NULL, n int); INSERT INTO target VALUES ('${KEY}', 9);
      CREATE PUBLICATION changes FOR TABLE target`);
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(query)), 'InvalidPipeline');
      assert.match(failure.message, /55000.*REPLICA IDENTITY/);
      assert.deepEqual(await test.sql('SELECT n FROM target'), [{ n: 9 }]);
      await test.sql('ALTER TABLE target REPLICA IDENTITY FULL');
      assert.equal((await fill(database, fillRequest(query))).rows, 2);
    });
  });
});
