import assert from 'node:assert/strict';
import type { Granularity } from '../../src/calendar/calendar.js';
import { partName } from '../../src/warehouse/create-partition.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';

const QUERY = 'SELECT :date::date AS day, k AS n FROM generate_series(1, 3) k';

describe('a missing part of a partitioned target', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(() => test.drop());
  beforeEach(async () => {
    await emptyDatabase(test);
    await asSuperuser(test, `GRANT CREATE ON SCHEMA public TO ${test.workerRole}`);
  });

  /** Makes tables as the worker's own: it may attach parts to them. */
  const own = (sql: string) =>
    asSuperuser(test, `SET search_path = public; SET ROLE ${test.workerRole}; ${sql}; RESET ROLE`);

  /** Each part of a table with its bounds, as a session in UTC sees them. */
  const parts = async (table = 'target'): Promise<string[]> => {
    const rows = await asSuperuser<{ part: string }>(
      test,
      `SELECT pg_get_expr(c.relpartbound, c.oid) || ' ' || c.relname AS part
         FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, set_config('TimeZone', 'UTC', false)
        WHERE i.inhparent = $1::regclass ORDER BY 1`,
      [table],
    );
    return rows.map(({ part }) => part.replace('FOR VALUES FROM ', ''));
  };

  const GRIDS: readonly (readonly [by: Granularity, zone: string, type: string, key: string, part: string])[] = [
    ['day', 'UTC', 'date', '2024-02-29', `('2024-02-29') TO ('2024-03-01') target_2024_02_29`],
    ['month', 'UTC', 'date', '2024-02', `('2024-02-01') TO ('2024-03-01') target_2024_02`],
    ['year', 'Asia/Tokyo', 'date', '2024', `('2024-01-01') TO ('2025-01-01') target_2024`],
    ['week', 'UTC', 'timestamp', '2024-W09', `('2024-02-26 00:00:00') TO ('2024-03-04 00:00:00') target_2024_w09`],
    [
      'hour',
      'UTC',
      'timestamp',
      '2024-02-29T23Z',
      `('2024-02-29 23:00:00') TO ('2024-03-01 00:00:00') target_2024_02_29t23z`,
    ],
    [
      'hour',
      'America/New_York',
      'timestamptz',
      '2024-11-03T05Z',
      `('2024-11-03 05:00:00+00') TO ('2024-11-03 06:00:00+00') target_2024_11_03t05z`,
    ],
    [
      'day',
      'America/New_York',
      'timestamptz',
      '2024-11-03',
      `('2024-11-03 04:00:00+00') TO ('2024-11-04 05:00:00+00') target_2024_11_03`,
    ],
    [
      'quarter',
      'Asia/Kathmandu',
      'timestamptz',
      '2024-Q1',
      `('2023-12-31 18:15:00+00') TO ('2024-03-31 18:15:00+00') target_2024_q1`,
    ],
    ['day', 'Pacific/Apia', 'date', '2011-12-29', `('2011-12-29') TO ('2011-12-31') target_2011_12_29`],
  ];
  for (const [by, zone, type, key, part] of GRIDS) {
    it(`is made for just the window, once: by ${by} in ${zone}, ${type}`, async () => {
      await own(`CREATE TABLE target (at ${type} NOT NULL, n int) PARTITION BY RANGE (at)`);
      const value = { date: ':date::date', timestamp: `:start AT TIME ZONE '${zone}'`, timestamptz: ':start' }[type];
      const query = `SELECT ${value} AS at, 1 AS n`;
      const pipeline = sqlPipeline(query, { create: true, partition: { column: 'at', by, zone } });
      await withWorker(test, async (database) => {
        for (let time = 0; time < 2; time++) {
          assert.equal((await fill(database, fillRequest(pipeline, { key }))).rows, 1);
          assert.deepEqual(await parts(), [part]);
        }
      });
    });
  }

  it('is made for TypeScript rows too; without `create` a row that no part takes is DataError', async () => {
    await own('CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day)');
    const rows = () => [{ day: KEY, n: 1 }];
    await withWorker(test, async (database) => {
      await failsAs(fill(database, fillRequest(typescriptPipeline(rows))), 'DataError');
      assert.deepEqual(await parts(), []);
      assert.equal((await fill(database, fillRequest(typescriptPipeline(rows, { create: true })))).rows, 1);
    });
    assert.equal((await parts()).length, 1);
  });

  it('is not made where a wider one takes the window, nor where several together do', async () => {
    await own(`CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE until_march PARTITION OF target FOR VALUES FROM (MINVALUE) TO ('2024-03-01');
      CREATE TABLE march PARTITION OF target FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
      CREATE TABLE later PARTITION OF target FOR VALUES FROM ('2024-04-01') TO (MAXVALUE)`);
    const before = await parts();
    await withWorker(test, async (database) => {
      for (const by of ['day', 'week', 'month', 'quarter', 'year'] as const) {
        const pipeline = sqlPipeline(QUERY, { create: true, partition: { column: 'day', by, zone: 'UTC' } });
        const key = { day: KEY, week: '2024-W09', month: '2024-03', quarter: '2024-Q2', year: '2024' }[by];
        assert.equal((await fill(database, fillRequest(pipeline, { key }))).rows, 3);
      }
    });
    assert.deepEqual(await parts(), before);
  });

  it('is made only for what the parts that are there leave out of the window', async () => {
    await own(`CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE january PARTITION OF target FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
      CREATE TABLE fourth PARTITION OF target FOR VALUES FROM ('2024-02-03') TO ('2024-02-04')`);
    const pipeline = sqlPipeline('SELECT :date::date + k AS day, k AS n FROM generate_series(0, 6) k', {
      create: true,
      partition: { column: 'day', by: 'week', zone: 'UTC' },
    });
    await withWorker(test, async (database) => {
      assert.equal((await fill(database, fillRequest(pipeline, { key: '2024-W05' }))).rows, 7);
    });
    assert.deepEqual((await parts()).slice(1), [
      `('2024-02-01') TO ('2024-02-03') target_2024_w05`,
      `('2024-02-03') TO ('2024-02-04') fourth`,
      `('2024-02-04') TO ('2024-02-05') target_2024_w05_2`,
    ]);
  });

  it('is made within a part that is itself partitioned by the column, and not in one that is by another', async () => {
    await own(`CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE y2024 PARTITION OF target FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (day);
      CREATE TABLE y2023 PARTITION OF target FOR VALUES FROM ('2023-01-01') TO ('2024-01-01') PARTITION BY HASH (n);
      CREATE TABLE h PARTITION OF y2023 FOR VALUES WITH (MODULUS 1, REMAINDER 0)`);
    const before = await parts();
    const pipeline = sqlPipeline(QUERY, { create: true });
    await withWorker(test, async (database) => {
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
      assert.equal((await fill(database, fillRequest(pipeline, { key: '2023-02-28' }))).rows, 3);
    });
    assert.deepEqual(await parts(), before);
    assert.deepEqual(await parts('y2024'), [`('2024-02-29') TO ('2024-03-01') y2024_2024_02_29`]);
  });

  it('is like the others: columns, defaults, checks, indexes, keys, triggers, owner, replica identity', async () => {
    await own(`CREATE TABLE kind (n int PRIMARY KEY); INSERT INTO kind VALUES (1), (2), (3);
      CREATE TABLE target (day date NOT NULL, n int NOT NULL DEFAULT 5 REFERENCES kind, id int GENERATED BY DEFAULT AS IDENTITY,
        twice int GENERATED ALWAYS AS (n * 2) STORED, CHECK (n < 100), PRIMARY KEY (day, n)) PARTITION BY RANGE (day);
      CREATE INDEX ON target (n) WHERE n > 1; CREATE INDEX ON target ((n + 1));
      CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
      CREATE TRIGGER each BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION nothing();
      ALTER TABLE target REPLICA IDENTITY FULL;
      CREATE TABLE theirs PARTITION OF target FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
      ALTER TABLE theirs REPLICA IDENTITY FULL`);
    await withWorker(test, (database) => fill(database, fillRequest(sqlPipeline(QUERY, { create: true }))));
    const look = async (table: string) =>
      (
        await asSuperuser(
          test,
          `SELECT relowner, relreplident, relkind, relpersistence,
                  (SELECT json_agg(json_build_array(attname, atttypid, attnotnull, attgenerated, pg_get_expr(adbin, adrelid)) ORDER BY attnum)
                     FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = c.oid AND attnum > 0) AS columns,
                  (SELECT json_agg(json_build_array(contype, pg_get_constraintdef(oid)) ORDER BY contype, pg_get_constraintdef(oid))
                     FROM pg_constraint WHERE conrelid = c.oid) AS constraints,
                  (SELECT json_agg(regexp_replace(pg_get_indexdef(indexrelid), '^.* USING', '') ORDER BY pg_get_expr(indexprs, indrelid), indkey::text)
                     FROM pg_index WHERE indrelid = c.oid) AS indexes,
                  (SELECT json_agg(tgname ORDER BY tgname) FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) AS triggers
             FROM pg_class c WHERE oid = $1::regclass`,
          [table],
        )
      )[0];
    const made = await look('target_2024_02_29');
    assert.ok(made);
    assert.deepEqual(made, await look('theirs'));
    assert.deepEqual(
      await asSuperuser(test, 'SELECT id, twice FROM target ORDER BY n'),
      [1, 2, 3].map((n) => ({ id: n, twice: 2 * n })),
    );
  });

  it('belongs to the table’s owner where the role is a member of it', async () => {
    const owners = `owners_${test.name}`;
    await asSuperuser(
      test,
      `CREATE ROLE ${owners}; GRANT ${owners} TO ${test.workerRole}; GRANT USAGE, CREATE ON SCHEMA public TO ${owners};
       CREATE TABLE public.target (day date NOT NULL, n int) PARTITION BY RANGE (day); ALTER TABLE public.target OWNER TO ${owners};
       GRANT SELECT, INSERT, DELETE ON public.target TO ${test.workerRole};
       REVOKE CREATE ON SCHEMA public FROM ${test.workerRole}`,
    );
    try {
      await withWorker(test, async (database) => {
        const outcome = await fill(database, fillRequest(sqlPipeline(QUERY, { create: true })));
        assert.equal(outcome.rows, 3);
      });
      assert.deepEqual(
        await asSuperuser(test, `SELECT relowner::regrole::text AS owner FROM pg_class WHERE relname ~ '^target_'`),
        [{ owner: owners }],
      );
    } finally {
      await asSuperuser(test, `DROP TABLE public.target; DROP OWNED BY ${owners}; DROP ROLE ${owners}`);
    }
  });

  it('which the role may not make is PermissionDenied, with what to grant', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day)');
    await withWorker(test, async (database) => {
      const failure = await failsAs(
        fill(database, fillRequest(sqlPipeline(QUERY, { create: true }))),
        'PermissionDenied',
      );
      assert.match(failure.message, /could not be made.*42501.*GRANT owner TO role.*GRANT CREATE ON SCHEMA/);
    });
    assert.deepEqual(await parts(), []);
  });

  const UNPARTED: Readonly<Record<string, readonly [sql: string, table: string, message: RegExp]>> = {
    'that is not partitioned': ['CREATE TABLE target (day date NOT NULL, n int)', 'target', /public\.target is not/],
    'that is partitioned by LIST': [
      'CREATE TABLE target (day date NOT NULL, n int) PARTITION BY LIST (day)',
      'target',
      /RANGE \(day\) alone, and public\.target is not/,
    ],
    'that is partitioned by another column': [
      'CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (n)',
      'target',
      /public\.target is not/,
    ],
    'that is partitioned by two columns': [
      'CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day, n)',
      'target',
      /public\.target is not/,
    ],
    'that is partitioned by an expression': [
      'CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE ((day + 1))',
      'target',
      /public\.target is not/,
    ],
    'that is a part itself': [
      `CREATE TABLE whole (day date NOT NULL, n int) PARTITION BY RANGE (day);
       CREATE TABLE target PARTITION OF whole FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (day)`,
      'target',
      /names is a part of public\.whole: name that/,
    ],
  };
  for (const [what, [sql, table, message]] of Object.entries(UNPARTED)) {
    it(`cannot be made of a target ${what}: InvalidPipeline says so`, async () => {
      await own(sql);
      const pipeline = sqlPipeline(QUERY, { create: true, target: { table } });
      await withWorker(test, async (database) => {
        assert.match((await failsAs(fill(database, fillRequest(pipeline)), 'InvalidPipeline')).message, message);
      });
      assert.deepEqual(await fills(test), []);
    });
  }

  it('is made beside a default part that holds none of its rows, and not beside one that does', async () => {
    await own(`CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE rest PARTITION OF target DEFAULT; INSERT INTO target VALUES ('${KEY}', 7), ('2024-03-05', 8)`);
    const pipeline = sqlPipeline(QUERY, { create: true });
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'SchemaMismatch');
      assert.match(failure.message, /default part of the table holds rows of its time.*old rows stand/i);
      assert.deepEqual(await parts(), ['DEFAULT rest']);
      assert.equal((await fill(database, fillRequest(pipeline, { key: '2024-03-01' }))).rows, 3);
    });
    assert.equal((await parts()).length, 2);
    assert.deepEqual(await asSuperuser(test, 'SELECT n FROM rest ORDER BY n'), [{ n: 7 }, { n: 8 }]);
  });

  it('does not take the place of another table of its name', async () => {
    await own(`CREATE TABLE target (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE target_2024_02_29 (theirs int)`);
    await withWorker(test, async (database) => {
      const failure = await failsAs(
        fill(database, fillRequest(sqlPipeline(QUERY, { create: true }))),
        'SchemaMismatch',
      );
      assert.match(failure.message, /is no part of the target.*Attach it, rename it or drop it/);
    });
    assert.deepEqual(await asSuperuser(test, 'SELECT theirs FROM target_2024_02_29'), []);
  });

  it('has hostile names quoted', async () => {
    const [schema, table, column] = ['a"b', `it's "; DROP TABLE canary; --`, `c") x; DROP TABLE canary; --`];
    const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
    await asSuperuser(
      test,
      `CREATE SCHEMA ${quoted(schema)}; GRANT ALL ON SCHEMA ${quoted(schema)} TO ${test.workerRole}`,
    );
    await own(`CREATE TABLE canary (n int);
      CREATE TABLE ${quoted(schema)}.${quoted(table)} (${quoted(column)} date NOT NULL) PARTITION BY RANGE (${quoted(column)})`);
    const pipeline = sqlPipeline(`SELECT :date::date AS ${quoted(column)}`, {
      create: true,
      target: { schema, table },
      partition: { column, by: 'day', zone: 'UTC' },
    });
    await withWorker(test, async (database) => {
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 1);
    });
    assert.deepEqual(await asSuperuser(test, 'SELECT FROM public.canary'), []);
    assert.equal((await parts(`${quoted(schema)}.${quoted(table)}`)).length, 1);
  });

  it('has a name that fits, and that no other table’s part has', () => {
    assert.equal(partName('sales', '2024-02-29', 0), 'sales_2024_02_29');
    assert.equal(partName('sales', '2024-02-29', 1), 'sales_2024_02_29_2');
    const names = ['x'.repeat(63), `${'x'.repeat(62)}y`, '日'.repeat(21)].map((table) =>
      partName(table, '2024-02-29T13Z', 2),
    );
    for (const name of names) {
      assert.ok(Buffer.byteLength(name) <= 63, name);
      assert.match(name, /_[0-9a-f]{8}_2024_02_29t13z_3$/);
    }
    assert.equal(new Set(names).size, 3);
  });
});
