import assert from 'node:assert/strict';
import pg from 'pg';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import type { Check, Query } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { fill } from '../../src/warehouse/fill.js';
import type { Database } from '../../src/warehouse/database.js';
import { partitionHistory } from '../../src/warehouse/partitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, KEY, settled, sqlPipeline, until, withWorker } from '../support/fill.js';
import { unhooked, withStatements } from '../support/statements.js';

const QUERY = 'SELECT day, n, price, ratio, part, took, note FROM source WHERE day >= :date AND day < :end_date';
const MAIN = ['date', 'end_date'] as const;

/** A query beside the pipeline's own, whose parameters it counts on behind. */
function query(text: string, behind: Query['parameters'] = MAIN): Query {
  return bindParameters(text, sqlTokens(text), 'day', behind);
}

function sumOf(column: string, of = column): Check {
  return { kind: 'sum', column, equals: query(`SELECT sum(${of}) FROM source WHERE day = :date`) };
}

/** What a person would write without the check: a later statement of the same transaction. */
const NAIVE: Check = {
  kind: 'sql',
  name: 'naive',
  query: query(
    `SELECT FROM (SELECT sum(n) AS n FROM source WHERE day = :date) s, (SELECT sum(n) AS n FROM target WHERE day = :date) t WHERE s.n <> t.n`,
    [],
  ),
};

describe('the check of a sum', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    const columns =
      'day date NOT NULL, n int, price numeric(12,2), ratio float8, part float4, took interval, note text';
    await test.sql(`CREATE TABLE source (${columns}); CREATE TABLE target (${columns});
      INSERT INTO source SELECT date '${KEY}', i, i * 0.1, i * 0.1, i * 0.1, i * interval '1 minute', 'x' FROM generate_series(1, 1000) i;
      INSERT INTO target (day, n) VALUES ('${KEY}', 99)`);
  });

  const run = (database: Database, checks: readonly Check[], text = QUERY) =>
    fill(database, fillRequest(sqlPipeline(text, { checks })));
  const filledBy = (checks: readonly Check[], text = QUERY) =>
    withWorker(test, (database) => run(database, checks, text));

  it('passes where the sums are equal, whatever the type, and the order of floating-point additions', async () => {
    const backwards = (column: string): Check => ({
      kind: 'sum',
      column,
      equals: query(
        `SELECT sum(v) FROM (SELECT ${column}::float8 AS v FROM source WHERE day = :date ORDER BY n DESC) s`,
      ),
    });
    const checks = [
      sumOf('n'),
      sumOf('price'),
      sumOf('ratio'),
      sumOf('part'),
      sumOf('took'),
      backwards('ratio'),
      backwards('part'),
    ];
    await withWorker(test, async (database) => {
      assert.equal((await run(database, checks)).rows, 1000);
      const [newest] = await partitionHistory(database, 'target', KEY);
      assert.ok(newest?.kind === 'fill');
      assert.deepEqual(
        new Set(newest.checks.map(({ passed, seen }) => `${passed} ${seen}`)),
        new Set(['true equal to its query']),
      );
    });
  });

  for (const [column, wrong] of [
    ['n', 'n + (n = 7)::int'],
    ['price', 'price + CASE n WHEN 7 THEN 0.01 ELSE 0 END'],
    ['ratio', 'ratio + CASE n WHEN 7 THEN 0.001 ELSE 0 END'],
    ['took', "took + CASE n WHEN 7 THEN interval '1 second' ELSE '0' END"],
  ] as const) {
    it(`fails where ${column} differs in one row of a thousand, and says no number of either`, async () => {
      const failure = await failsAs(filledBy([sumOf(column, wrong)]), 'CheckFailed');
      assert.match(failure.message, new RegExp(`the check sum \\(${column}\\): not equal to its query\\. The old`));
      assert.deepEqual(await test.sql('SELECT n FROM target'), [{ n: 99 }]);
    });
  }

  it('holds NULL, no row and 0 for the same: nothing', async () => {
    await test.sql('DELETE FROM source');
    for (const text of ['SELECT sum(n) FROM source', 'SELECT 0', 'SELECT n FROM source', 'SELECT NULL::int']) {
      assert.equal((await filledBy([{ kind: 'sum', column: 'n', equals: query(text) }])).rows, 0, text);
    }
    await failsAs(filledBy([{ kind: 'sum', column: 'n', equals: query('SELECT 1') }]), 'CheckFailed');
  });

  it('takes parameters that the pipeline’s query does not have, check by check', async () => {
    const first = query(`SELECT sum(n) FROM source WHERE day::text = :key`);
    const second = query(`SELECT sum(price) FROM source WHERE day < :end AND :key IS NOT NULL`, first.parameters);
    assert.deepEqual(second.parameters, ['date', 'end_date', 'key', 'end']);
    const checks: Check[] = [
      { kind: 'sum', column: 'n', equals: first },
      { kind: 'rows', min: 1 },
      { kind: 'sum', column: 'price', equals: second },
    ];
    assert.equal((await filledBy(checks)).rows, 1000);
  });

  it('leaves the query verbatim: WITH, ORDER BY, LIMIT, a comment at its end', async () => {
    const text = `WITH s AS (SELECT * FROM source) SELECT day, n, NULL AS note FROM s WHERE day >= :date AND day < :end_date ORDER BY n LIMIT 10 -- ten`;
    assert.equal((await filledBy([{ kind: 'sum', column: 'n', equals: query('SELECT 55 -- of ten') }], text)).rows, 10);
  });

  const REFUSED: Readonly<
    Record<string, readonly [column: string, text: string, type: 'InvalidPipeline' | 'SchemaMismatch', message: RegExp]>
  > = {
    'two rows': ['n', 'SELECT n FROM source', 'InvalidPipeline', /check sum \(n\) of target gives more than one row/],
    'two columns': [
      'n',
      'SELECT 1, 2',
      'InvalidPipeline',
      /check sum \(n\) of target: .*subquery must return only one column/,
    ],
    'no number': ['n', "SELECT 'many'", 'InvalidPipeline', /check sum \(n\) of target gives no number/],
    'a table that is not there': [
      'n',
      'SELECT sum(n) FROM nowhere',
      'SchemaMismatch',
      /check sum \(n\) of target: .*"nowhere"/,
    ],
    'a column that has no sum': [
      'note',
      'SELECT 1',
      'SchemaMismatch',
      /check sum \(note\) of target: the column is of type text/,
    ],
    'an unknown column': ['nn', 'SELECT 1', 'SchemaMismatch', /check sum \(nn\) of target names the column "nn"/],
  };
  for (const [what, [column, text, type, message]] of Object.entries(REFUSED)) {
    it(`of ${what}: ${type}, naming the check`, async () => {
      const failure = await failsAs(filledBy([{ kind: 'sum', column, equals: query(text) }]), type);
      assert.match(failure.message, message);
      assert.deepEqual(await test.sql('SELECT n FROM target'), [{ n: 99 }]);
    });
  }

  it('holds where a trigger may drop rows: what it lets pass, changes and drops', async () => {
    await test.sql(`CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.note = 'more' THEN NEW.n := NEW.n + 1; END IF; IF NEW.note = 'drop' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER touch BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION touch()`);
    assert.equal((await filledBy([sumOf('n'), sumOf('price')])).rows, 1000);
    await test.sql(`UPDATE source SET note = 'more' WHERE n = 5`);
    await failsAs(filledBy([sumOf('n')]), 'CheckFailed');
    await test.sql(`UPDATE source SET note = 'drop' WHERE n = 5`);
    const failure = await failsAs(filledBy([sumOf('n')]), 'SchemaMismatch');
    assert.match(failure.message, /1 of the 1000 rows sent .* dropped by a trigger/);
  });

  it('is of the rows’ own snapshot: what is committed behind the INSERT counts for neither side', async () => {
    const late = { after: ({ kind }: { kind: string }) => (kind === 'insert' ? unhooked(addRow) : undefined) };
    await withWorker(test, async (database) => {
      await withStatements(late, () => run(database, [sumOf('n')]));
      await failsAs(
        withStatements(late, () => run(database, [NAIVE])),
        'CheckFailed',
      );
    });
  });

  it('is of the rows’ own snapshot: what is committed while the INSERT runs, too, with a trigger as without', async () => {
    await test.sql(`CREATE FUNCTION gate() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
      BEGIN PERFORM pg_advisory_xact_lock(7); RETURN true; END $$`);
    const gated = `${QUERY} AND gate()`;
    const holder = new pg.Client(test.ownerUrl);
    await holder.connect();
    const attempt = async (database: Database, check: Check) => {
      await holder.query('SELECT pg_advisory_lock(7)');
      const running = settled(run(database, [check], gated));
      await until('the INSERT waits', async () => {
        const [row] = await test.sql<{ waits: boolean }>(
          `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted
                             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS waits`,
        );
        return row?.waits;
      });
      await addRow();
      await holder.query('SELECT pg_advisory_unlock(7)');
      return running;
    };
    try {
      await withWorker(test, async (database) => {
        assert.equal((await attempt(database, sumOf('n'))).value?.rows, 1000);
        assert.equal((await attempt(database, NAIVE)).failure?.type, 'CheckFailed');
        await test.sql(`CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
          CREATE TRIGGER pass BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION pass()`);
        assert.equal((await attempt(database, sumOf('n'))).value?.rows, 1002);
      });
    } finally {
      await holder.end();
    }
  });

  it('never fails falsely beside a session that writes the source without rest', async () => {
    let stop = false;
    let added = 0;
    const writer = (async () => {
      while (!stop) {
        await addRow();
        added++;
      }
    })();
    try {
      await withWorker(test, async (database) => {
        let grown = 0;
        for (let tries = 0; tries < 25; tries++) {
          const before = added;
          const { rows } = await run(database, [sumOf('n'), sumOf('ratio')]);
          assert.ok(rows >= 1000);
          if (added > before) grown++;
        }
        assert.ok(grown >= 10, `The source grew during ${grown} of 25 fills only`);
      });
    } finally {
      stop = true;
      await writer;
    }
  });

  const addRow = async () => void (await test.sql(`INSERT INTO source (day, n, ratio) VALUES ('${KEY}', 1, 0.3)`));
});
