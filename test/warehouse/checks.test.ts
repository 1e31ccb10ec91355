import assert from 'node:assert/strict';
import type { Check } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import { partitionHistory } from '../../src/warehouse/partitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, ledgerRows, sqlPipeline, withWorker } from '../support/fill.js';
import { countStatements } from '../support/superuser.js';
import { unhooked, withStatements } from '../support/statements.js';

const QUERY = 'SELECT day, n, note FROM source WHERE day >= :date AND day < :end_date';

describe('the checks of a fill', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TABLE source (day date NOT NULL, n int, note text);
      INSERT INTO source VALUES ('${KEY}', 1, 'a'), ('${KEY}', 2, 'a'), ('${KEY}', NULL, 'b');
      CREATE TABLE target (day date NOT NULL, n int, note text);
      INSERT INTO target VALUES ('${KEY}', 10, 'old'), ('2024-03-01', 1, 'a')`);
  });

  const held = () => test.sql('SELECT day::text, n, note, xmin::text FROM target ORDER BY day, n');

  const filled = (checks: readonly Check[]) =>
    withWorker(test, async (database) => {
      const pipeline = sqlPipeline(QUERY, { checks });
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
      const [newest] = await partitionHistory(database, 'target', KEY);
      assert.ok(newest?.kind === 'fill');
      return newest.checks;
    });

  const FAILING: Readonly<Record<string, readonly [check: Check, message: RegExp]>> = {
    'too few rows': [{ kind: 'rows', min: 4 }, /the check rows \(min 4\): 3 rows/],
    'too many rows': [{ kind: 'rows', max: 2 }, /the check rows \(max 2\): 3 rows/],
    'rows out of both limits': [{ kind: 'rows', min: 5, max: 9 }, /the check rows \(min 5, max 9\): 3 rows/],
    'a repeated value': [{ kind: 'unique', columns: ['note'] }, /the check unique \(note\): 1 value more than once/],
    'a repeated value that others make different': [
      { kind: 'unique', columns: ['day', 'note'] },
      /the check unique \(day, note\): 1 value more than once/,
    ],
    'a NULL': [{ kind: 'not_null', columns: ['note', 'n'] }, /the check not_null \(note, n\): 1 NULL in n\b/],
  };
  for (const [what, [check, message]] of Object.entries(FAILING)) {
    it(`${what}: CheckFailed names the check, old rows stand, and readers saw no other`, async () => {
      const before = await held();
      const seen: unknown[] = [];
      await withWorker(test, async (database) => {
        const failure = await failsAs(
          withStatements({ before: () => unhooked(async () => void seen.push(await held())) }, () =>
            fill(database, fillRequest(sqlPipeline(QUERY, { checks: [check] }))),
          ),
          'CheckFailed',
        );
        assert.match(failure.message, message);
        assert.ok(failure.final, 'not retried');
      });
      assert.deepEqual(await held(), before);
      assert.ok(seen.length > 10);
      for (const rows of seen) assert.deepEqual(rows, before);
      assert.deepEqual(await fills(test), []);
      assert.deepEqual(await ledgerRows(test), []);
    });
  }

  it('are all named where several fail, and only those', async () => {
    const checks: Check[] = [
      { kind: 'rows', min: 1 },
      { kind: 'unique', columns: ['note'] },
      { kind: 'not_null', columns: ['n'] },
      { kind: 'not_null', columns: ['note'] },
    ];
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(sqlPipeline(QUERY, { checks }))), 'CheckFailed');
      assert.match(failure.message, /the checks unique \(note\): .*; not_null \(n\): 1 NULL in n\. The old/);
    });
  });

  it('look at the new rows of the window alone, and their outcome is kept', async () => {
    const checks = await filled([
      { kind: 'rows', min: 3, max: 3 },
      { kind: 'unique', columns: ['n', 'note'] },
      { kind: 'not_null', columns: ['note', 'day'] },
    ]);
    assert.deepEqual(checks, [
      { check: 'rows (min 3, max 3)', passed: true, seen: '3 rows' },
      { check: 'unique (n, note)', passed: true, seen: 'no repetition' },
      { check: 'not_null (note, day)', passed: true, seen: 'no NULL' },
    ]);
  });

  it('on a column that the target lacks are SchemaMismatch, before a row moves', async () => {
    const before = await held();
    await withWorker(test, async (database) => {
      const pipeline = sqlPipeline(QUERY, { checks: [{ kind: 'unique', columns: ['revenue'] }] });
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'SchemaMismatch');
      assert.match(failure.message, /unique \(revenue\).*"revenue"/);
    });
    assert.deepEqual(await held(), before);
  });

  it('of NULLs: two of them are a repetition', async () => {
    await test.sql(`INSERT INTO source VALUES ('${KEY}', NULL, 'c')`);
    await withWorker(test, async (database) => {
      const pipeline = sqlPipeline(QUERY, { checks: [{ kind: 'unique', columns: ['n'] }] });
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'CheckFailed');
      assert.match(failure.message, /unique \(n\): 1 value more than once/);
    });
  });

  describe('`unique` is not counted where a unique index covers it:', () => {
    const INDEXES: Readonly<Record<string, readonly [sql: string, columns: readonly string[], covered: boolean]>> = {
      'an index over these columns': ['CREATE UNIQUE INDEX ON target (day, note) INCLUDE (n)', ['note', 'day'], true],
      'an index over fewer of them': ['CREATE UNIQUE INDEX ON target (note)', ['day', 'note'], true],
      'a primary key': ['ALTER TABLE target ADD PRIMARY KEY (day, note)', ['day', 'note'], true],
      'a constraint that is deferred': [
        'ALTER TABLE target ADD UNIQUE (note) DEFERRABLE INITIALLY DEFERRED',
        ['note'],
        true,
      ],
      'an index by another collation, to which too only the same bytes are equal': [
        'CREATE UNIQUE INDEX ON target (note COLLATE "C")',
        ['note'],
        true,
      ],
      'not by one to which values differ that are equal in the column': [
        `CREATE COLLATION cases (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         ALTER TABLE target ALTER note TYPE text COLLATE cases; CREATE UNIQUE INDEX ON target (note COLLATE "C")`,
        ['note'],
        false,
      ],
      'not by one of an operator class with an equality of its own': [
        'CREATE UNIQUE INDEX ON target (note text_pattern_ops)',
        ['note'],
        false,
      ],
      'not by one over more columns': ['CREATE UNIQUE INDEX ON target (day, note, n)', ['day', 'note'], false],
      'not by a partial one': [`CREATE UNIQUE INDEX ON target (note) WHERE n > 0`, ['note'], false],
      'not by one over an expression': ['CREATE UNIQUE INDEX ON target (lower(note))', ['note'], false],
      'not by a plain one': ['CREATE INDEX ON target (note)', ['note'], false],
      'not by its INCLUDE columns': ['CREATE UNIQUE INDEX ON target (day, note) INCLUDE (n)', ['day', 'n'], false],
    };
    for (const [what, [sql, columns, covered]] of Object.entries(INDEXES)) {
      it(what, async () => {
        await test.sql(
          `TRUNCATE target; ALTER TABLE target ALTER note SET NOT NULL; UPDATE source SET note = 'c' WHERE n = 2`,
        );
        await test.sql(sql);
        const checks = await filled([{ kind: 'unique', columns }]);
        assert.equal(checks[0]?.seen, covered ? 'held by a unique index' : 'no repetition');
        assert.equal(await groupings(), covered ? 0 : 1);
      });
    }

    it('not by one over a column that may be NULL, which it would let repeat', async () => {
      await test.sql(
        `TRUNCATE target; CREATE UNIQUE INDEX ON target (n); INSERT INTO source VALUES ('${KEY}', NULL, 'c')`,
      );
      await withWorker(test, async (database) => {
        const pipeline = sqlPipeline(QUERY, { checks: [{ kind: 'unique', columns: ['n'] }] });
        await failsAs(fill(database, fillRequest(pipeline)), 'CheckFailed');
      });
    });

    it('not by one of the parent alone, where a part is named', async () => {
      await test.sql(`CREATE TABLE parent (day date NOT NULL, n int, note text NOT NULL) PARTITION BY RANGE (day);
        CREATE TABLE part PARTITION OF parent DEFAULT;
        CREATE UNIQUE INDEX only_parent ON ONLY parent (day, note)`);
      await withWorker(test, async (database) => {
        for (const table of ['parent', 'part']) {
          const pipeline = sqlPipeline(QUERY, {
            target: { table },
            checks: [{ kind: 'unique', columns: ['day', 'note'] }],
          });
          await failsAs(fill(database, fillRequest(pipeline)), 'CheckFailed');
        }
      });
    });

    beforeEach(async () => {
      await countStatements(test);
    });

    /** How often the server was asked for repeated values in this database. */
    const groupings = async (): Promise<number> => {
      const [row] = await test.sql<{ calls: number }>(
        `SELECT coalesce(sum(calls), 0)::int AS calls FROM statements.pg_stat_statements
          WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query LIKE '%HAVING pg_catalog.count(*) > $%'`,
      );
      return row?.calls ?? -1;
    };
  });

  describe('a window that is emptied', () => {
    const rowsOf = async (allowEmpty = true) =>
      withWorker(test, (database) => fill(database, fillRequest(sqlPipeline(QUERY, { allowEmpty }))));

    it('follows its source: 2 rows, 1, none, and the ledger says so', async () => {
      for (const [remove, rows] of [
        ['n IS NULL', 2],
        ['n = 2', 1],
        ['true', 0],
      ] as const) {
        await test.sql(`DELETE FROM source WHERE ${remove}`);
        const outcome = await rowsOf();
        assert.equal(outcome.rows, rows);
        assert.deepEqual(outcome.warnings, rows === 0 ? ['emptied'] : []);
        assert.equal((await ledgerRows(test))[0]?.rows, rows);
        assert.equal((await held()).filter(({ day }) => day === KEY).length, rows);
      }
      const again = await rowsOf(false);
      assert.deepEqual([again.rows, again.deleted, again.warnings], [0, 0, []], 'an empty one may stay empty');
    });

    it('is CheckFailed with allowEmpty: false, and the old rows stand', async () => {
      await test.sql('DELETE FROM source');
      const before = await held();
      const failure = await failsAs(rowsOf(false), 'CheckFailed');
      assert.match(failure.message, /would empty a window that holds 1 row\b.*`allowEmpty` is false/);
      assert.deepEqual(await held(), before);
      assert.deepEqual(await fills(test), []);
    });

    it('is refused by the check of rows as well', async () => {
      await test.sql('DELETE FROM source');
      await withWorker(test, async (database) => {
        await failsAs(
          fill(database, fillRequest(sqlPipeline(QUERY, { checks: [{ kind: 'rows', min: 1 }] }))),
          'CheckFailed',
        );
      });
      assert.equal((await held()).length, 2);
    });
  });
});
