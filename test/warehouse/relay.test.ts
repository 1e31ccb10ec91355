import assert from 'node:assert/strict';
import type { Check } from '../../src/pipeline/pipeline.js';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { describeSource } from '../../src/warehouse/describe-source.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, KEY, NO_LOOKS_MS, settled } from '../support/fill.js';
import { fillWithRetries } from '../support/retry.js';
import { relay, relayPipeline } from '../support/source-database.js';
import { withStatements } from '../support/statements.js';
import { asSuperuser } from '../support/superuser.js';

const SALES = 'SELECT n, sold_on AS day FROM sales WHERE sold_on >= :date AND sold_on < :end_date';

describe('rows of another PostgreSQL', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let target: Database;
  let source: Database;

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    [target, source] = await Promise.all([
      openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS }),
      openDatabase(remote.url, { fills: 4, watchEveryMs: NO_LOOKS_MS }),
    ]);
    await remote.sql(`
      CREATE TABLE sales (sold_on date NOT NULL, n int NOT NULL);
      CREATE TABLE empty (day date, n int);
      CREATE TABLE target (day date, n int);
      INSERT INTO target VALUES ('${KEY}', 5);
      CREATE TABLE noted (at timestamptz);
      CREATE TABLE private (day date, n int);
      REVOKE ALL ON private FROM ${remote.workerRole};
      GRANT INSERT ON noted TO ${remote.workerRole};
      CREATE FUNCTION note() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO noted VALUES (now()); SELECT 1'`);
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql('CREATE TABLE target (day date NOT NULL, n bigint)');
    await remote.sql(`TRUNCATE sales;
      INSERT INTO sales SELECT d, n FROM unnest(ARRAY['2024-02-28', '${KEY}', '2024-03-01']::date[]) d, generate_series(1, 3) n`);
  });
  after(async () => {
    await Promise.all([target.close(), source.close()]);
    await Promise.all([test.drop(), remote.drop()]);
  });

  const rows = (): Promise<Record<string, unknown>[]> =>
    test.sql('SELECT day::text, n::int FROM target ORDER BY day, n');
  const threeRows = [1, 2, 3].map((n) => ({ day: KEY, n }));

  it('replace the window alone', async () => {
    await test.sql(`INSERT INTO target VALUES ('2024-02-28', 7), ('${KEY}', 7), ('${KEY}', 8)`);
    const outcome = await relay(target, source, relayPipeline(`${SALES} -- the day's`));
    assert.deepEqual([outcome.rows, outcome.deleted], [3, 2]);
    assert.deepEqual(await rows(), [{ day: '2024-02-28', n: 7 }, ...threeRows]);
  });

  it('may be none', async () => {
    await test.sql(`INSERT INTO target VALUES ('${KEY}', 7)`);
    const outcome = await relay(target, source, relayPipeline('SELECT day, n FROM empty'));
    assert.deepEqual([outcome.rows, outcome.deleted, outcome.warnings], [0, 1, ['emptied']]);
    assert.deepEqual(await rows(), []);
  });

  it('may come from a table of the target’s name', async () => {
    const outcome = await relay(target, source, relayPipeline('SELECT * FROM target WHERE day = :date'));
    assert.equal(outcome.rows, 1);
    assert.deepEqual(await rows(), [{ day: KEY, n: 5 }]);
  });

  it('are compared with the old, where that is asked', async () => {
    const pipeline = relayPipeline(SALES, { skipUnchanged: true });
    assert.deepEqual((await relay(target, source, pipeline)).unchanged ?? false, false);
    assert.equal((await relay(target, source, pipeline)).unchanged, true);
    await remote.sql('UPDATE sales SET n = 10 WHERE n = 3');
    assert.deepEqual((await relay(target, source, pipeline)).unchanged ?? false, false);
    assert.deepEqual(await rows(), [...threeRows.slice(0, 2), { day: KEY, n: 10 }]);
  });

  it('go by names as they are written, into a part of a partitioned table too', async () => {
    await test.sql(`CREATE SCHEMA "My Schema";
      CREATE TABLE "My Schema"."Order" ("Day" date NOT NULL, "select" int, "a""b" text, made timestamptz DEFAULT now(),
        twice int GENERATED ALWAYS AS ("select" * 2) STORED) PARTITION BY RANGE ("Day");
      CREATE TABLE "My Schema".part PARTITION OF "My Schema"."Order" FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
      GRANT USAGE ON SCHEMA "My Schema" TO PUBLIC; GRANT SELECT, INSERT, DELETE ON ALL TABLES IN SCHEMA "My Schema" TO PUBLIC`);
    const settings = {
      target: { schema: 'My Schema', table: 'Order' },
      partition: { column: 'Day', by: 'day' as const, zone: 'UTC' },
    };
    await relay(target, source, relayPipeline(`SELECT 'x' AS "a""b", 7 AS "select", :date AS "Day"`, settings));
    assert.deepEqual(
      await test.sql(`SELECT "Day"::text, "select", "a""b", twice, made IS NOT NULL AS made FROM "My Schema"."Order"`),
      [{ Day: KEY, select: 7, 'a"b': 'x', twice: 14, made: true }],
    );
  });

  it('are of the pipeline’s zone', async () => {
    const partition = { column: 'day', by: 'day' as const, zone: 'Pacific/Auckland' };
    const query = `SELECT :start::date AS day, extract(timezone FROM :start) / 3600 AS n`;
    await relay(target, source, relayPipeline(query, { partition }));
    assert.deepEqual(await rows(), [{ day: KEY, n: 13 }]);
  });

  it('say their columns before they come', async () => {
    const described = await describeSource(
      source,
      relayPipeline('SELECT n, sold_on AS day, 1.5::numeric(12,2) AS x, :key AS k FROM sales'),
    );
    assert.deepEqual(
      described.map(({ name, type }) => [name, type]),
      [
        ['n', 'integer'],
        ['day', 'date'],
        ['x', 'numeric(12,2)'],
        ['k', 'text'],
      ],
    );
  });

  it('are looked for once nothing can fill the window beside', async () => {
    const kinds: string[] = [];
    await withStatements(
      {
        before: ({ kind, text }) =>
          void kinds.push(text.startsWith('BEGIN ISOLATION LEVEL REPEATABLE') ? 'snapshot' : kind),
      },
      () => relay(target, source, relayPipeline(SALES)),
    );
    const order = ['lock', 'look', 'snapshot', 'delete', 'copy'].map((kind) => kinds.indexOf(kind));
    assert.ok(!order.includes(-1), kinds.join());
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    );
  });

  describe('cannot do harm by their parameters:', () => {
    for (const key of [`x'); DROP TABLE sales; --`, `\\'; DROP TABLE sales; --`, `$$ \\x00 "':key`]) {
      it(key, async () => {
        await test.sql('ALTER TABLE target ADD COLUMN key text');
        const pipeline = relayPipeline('SELECT :date AS day, 1 AS n, :key AS key');
        const request = fillRequest(pipeline);
        await fill(target, { ...request, source, window: { ...request.window, key } });
        assert.deepEqual(await test.sql('SELECT key FROM target'), [{ key }]);
        assert.deepEqual(await remote.sql('SELECT count(*)::int AS n FROM sales'), [{ n: 9 }]);
      });
    }
  });

  describe('fail with the old rows left where', () => {
    beforeEach(() => test.sql(`INSERT INTO target VALUES ('${KEY}', 7)`));
    afterEach(async () => assert.deepEqual(await rows(), [{ day: KEY, n: 7 }]));

    it('they lie outside the window', async () => {
      await failsAs(relay(target, source, relayPipeline('SELECT sold_on AS day, n FROM sales')), 'RowsOutsideWindow');
    });

    it('the query writes', async () => {
      for (const query of ['SELECT :date AS day, note() AS n', `SELECT :date AS day, nextval('pg_temp.s') AS n`]) {
        const failure = await failsAs(
          relay(target, source, relayPipeline(query)),
          query.includes('note') ? 'InvalidPipeline' : 'SchemaMismatch',
        );
        assert.match(failure.message, /On the source of target \(test_\w+ at 127\.0\.0\.1:\d+\)/);
        if (query.includes('note')) assert.match(failure.message, /25006.*writes/);
      }
      assert.deepEqual(await remote.sql('SELECT FROM noted'), []);
    });

    it('the role may not read', async () => {
      const failure = await failsAs(relay(target, source, relayPipeline('SELECT * FROM private')), 'PermissionDenied');
      assert.match(failure.message, /On the source.*private.*Its role needs SELECT/);
      assert.doesNotMatch(failure.message, /migrate/);
    });

    it('the query is wrong', async () => {
      const failure = await failsAs(
        relay(target, source, relayPipeline('SELECT nope AS day FROM sales')),
        'SchemaMismatch',
      );
      assert.match(failure.message, /On the source.*column "nope" does not exist/);
    });

    it('a column is not the target’s, or is missing there', async () => {
      const failure = await failsAs(relay(target, source, relayPipeline('SELECT n AS m FROM sales')), 'SchemaMismatch');
      assert.match(failure.message, /"m" is not in public\.target.*the partition column "day" is not given/s);
    });

    it('a value cannot be read half-way', async () => {
      const failure = await failsAs(
        relay(
          target,
          source,
          relayPipeline('SELECT :date AS day, 1000 / (20000 - g) AS n FROM generate_series(1, 20000) g'),
        ),
        'DataError',
      );
      assert.match(failure.message, /On the source.*22012/);
    });

    it('the target refuses one half-way', async () => {
      await test.sql('ALTER TABLE target ADD CHECK (n < 150000)');
      const failure = await failsAs(
        relay(target, source, relayPipeline('SELECT :date AS day, g AS n FROM generate_series(1, 1000000) g')),
        'DataError',
      );
      assert.match(failure.message, /23514/);
      assert.doesNotMatch(failure.message, /source/);
      const running = await asSuperuser(
        remote,
        `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ '^repave [^ ]+/' AND state <> 'idle'`,
      );
      assert.deepEqual(running, []);
    });

    it('a trigger drops some', async () => {
      await test.sql(`CREATE FUNCTION drop_two() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.n = 2 THEN RETURN NULL; END IF; RETURN NEW; END';
        CREATE TRIGGER drop_two BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION drop_two()`);
      const failure = await failsAs(relay(target, source, relayPipeline(SALES)), 'SchemaMismatch');
      assert.match(failure.message, /1 of the 3 rows/);
      await test.sql('DROP FUNCTION drop_two CASCADE');
    });
  });

  describe('and a sum', () => {
    const sum = (query: string): Check => ({
      kind: 'sum',
      column: 'n',
      equals: bindParameters(query, sqlTokens(query), 'day', relayPipeline(SALES).query.parameters),
    });

    it('are of one snapshot, however the source changes between them', async () => {
      const pipeline = relayPipeline(SALES, { checks: [sum('SELECT sum(n) FROM sales WHERE sold_on = :date')] });
      let changed = 0;
      const change = async (): Promise<void> => {
        changed += 1;
        await remote.sql(`INSERT INTO sales VALUES ('${KEY}', 100)`);
      };
      const after = async ({ text }: { text: string }): Promise<void> => {
        if (/^SELECT .*AS answers/s.test(text) || text.startsWith('DELETE')) await change();
      };
      const outcome = await withStatements({ after }, () => relay(target, source, pipeline));
      assert.equal(changed, 2);
      assert.equal(outcome.rows, 3);
      assert.deepEqual(await rows(), threeRows);
    });

    it('that differ fail the fill', async () => {
      const pipeline = relayPipeline(SALES, { checks: [sum('SELECT sum(n) + 1 FROM sales WHERE sold_on = :date')] });
      await failsAs(relay(target, source, pipeline), 'CheckFailed');
      assert.deepEqual(await rows(), []);
    });
  });

  it('fill one window once where two runs read at the same time', async () => {
    const ends = await Promise.all(
      [1, 2].map(() => fillWithRetries((attempt) => relay(target, source, relayPipeline(SALES), { attempt }))),
    );
    assert.deepEqual(
      ends.map(({ outcome }) => outcome.rows),
      [3, 3],
    );
    assert.deepEqual(await rows(), threeRows);
  });

  it('arrive as they were in another encoding, and not at all where they have none', async () => {
    await test.sql('ALTER TABLE target ADD COLUMN note text');
    const encodings = {
      LATIN1: { "'caf' || chr(233)": 'café' },
      SQL_ASCII: { "convert_from('\\xc3a9', 'SQL_ASCII')": 'é', "convert_from('\\xff', 'SQL_ASCII')": undefined },
    };
    for (const [encoding, values] of Object.entries(encodings)) {
      const name = `${remote.name}_${encoding.toLowerCase()}`;
      await asSuperuser(
        test,
        `CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'`,
      );
      const other = await openDatabase(remote.url.replace(/[^/]*$/, name), { fills: 1 });
      try {
        for (const [value, note] of Object.entries(values)) {
          const query = `SELECT :date AS day, 1 AS n, ${value} AS note`;
          const { failure } = await settled(relay(target, other, relayPipeline(query)));
          assert.equal(failure?.type, note === undefined ? 'DataError' : undefined, failure?.message);
          if (note !== undefined) assert.deepEqual(await test.sql('SELECT note FROM target'), [{ note }]);
        }
      } finally {
        await other.close();
        await asSuperuser(test, `DROP DATABASE ${name} WITH (FORCE)`);
      }
    }
  });

  it('of a source that was not handed in: a plain word', async () => {
    const failure = await failsAs(fill(target, fillRequest(relayPipeline(SALES))), 'Unexpected');
    assert.match(failure.message, /reads from another database/);
  });
});
