import assert from 'node:assert/strict';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import type { Check, Query } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillOutcome } from '../../src/warehouse/fill-request.js';
import { partitionHistory } from '../../src/warehouse/partitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';
import { withStatements } from '../support/statements.js';

const QUERY = 'SELECT * FROM source WHERE day >= :date AND day < :end_date';

/** The columns of source and target: of each kind of type that values are read for. */
const COLUMNS = `day date NOT NULL, n int, price numeric(6,2), code varchar(3), fixed char(3), mood mood, domained small,
  at timestamptz, ratio float8, id uuid, flag bool, doc json`;

function query(text: string): Query {
  return bindParameters(text, sqlTokens(text), 'day');
}

describe('the checks by kind', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TYPE mood AS ENUM ('low', 'high'); CREATE DOMAIN small AS int CHECK (VALUE < 1000);
      CREATE TABLE source (${COLUMNS}); CREATE TABLE target (${COLUMNS});
      INSERT INTO source VALUES
        ('${KEY}', 1, 1.25, 'EUR', 'a', 'low', 7, '2024-02-29 12:00+00', 0.5, '00000000-0000-0000-0000-000000000001', true, '1'),
        ('${KEY}', 2, 2.50, 'USD', 'b', 'high', 8, '2024-02-29 13:00+00', 1.5, '00000000-0000-0000-0000-000000000002', false, '1'),
        ('${KEY}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
      INSERT INTO target (day, n) VALUES ('${KEY}', 99), ('2024-03-01', 12345)`);
  });

  const held = () => test.sql('SELECT day::text, n, xmin::text FROM target ORDER BY day, n');
  const filledBy = (checks: readonly Check[], text = QUERY): Promise<FillOutcome> =>
    withWorker(test, (database) => fill(database, fillRequest(sqlPipeline(text, { checks }))));
  const newest = async () =>
    withWorker(test, async (database) => {
      const [entry] = await partitionHistory(database, 'target', KEY);
      assert.ok(entry?.kind === 'fill');
      return entry;
    });

  const PASSING: Readonly<Record<string, readonly [check: Check, seen: string]>> = {
    'accepted int': [{ kind: 'accepted', column: 'n', values: ['1', '02'] }, 'all accepted'],
    'accepted varchar': [{ kind: 'accepted', column: 'code', values: ['EUR', 'USD'] }, 'all accepted'],
    'accepted char': [{ kind: 'accepted', column: 'fixed', values: ['a', 'b'] }, 'all accepted'],
    'accepted enum': [{ kind: 'accepted', column: 'mood', values: ['low', 'high'] }, 'all accepted'],
    'accepted domain': [{ kind: 'accepted', column: 'domained', values: ['7', '8', '5000'] }, 'all accepted'],
    'accepted numeric': [{ kind: 'accepted', column: 'price', values: ['1.250', '2.5'] }, 'all accepted'],
    'accepted bool': [{ kind: 'accepted', column: 'flag', values: ['true', 'f'] }, 'all accepted'],
    'range int, both ends included': [{ kind: 'range', column: 'n', min: '1', max: '2' }, 'all in range'],
    'range numeric': [{ kind: 'range', column: 'price', min: '0.001', max: '2.5' }, 'all in range'],
    'range date': [{ kind: 'range', column: 'day', min: '2024-02-29', max: '2024-02-29' }, 'all in range'],
    'range timestamptz': [{ kind: 'range', column: 'at', min: '2024-02-29', max: 'infinity' }, 'all in range'],
    'range enum': [{ kind: 'range', column: 'mood', min: 'low' }, 'all in range'],
    'range float': [{ kind: 'range', column: 'ratio', max: '1.5' }, 'all in range'],
    'range domain': [{ kind: 'range', column: 'domained', max: '5000' }, 'all in range'],
    'sql of no row': [{ kind: 'sql', query: query('SELECT * FROM target WHERE day = :date AND n > 2') }, 'no row'],
    'sql that ends in a comment': [
      { kind: 'sql', query: query("SELECT 1 WHERE :key <> '2024-02-29' -- of it") },
      'no row',
    ],
    'sql that names a column twice': [{ kind: 'sql', query: query('SELECT 1 AS a, NULL AS a WHERE false') }, 'no row'],
    'sql that reads another table': [
      { kind: 'sql', query: query('SELECT FROM source s WHERE NOT EXISTS (SELECT FROM target t WHERE t.day = s.day)') },
      'no row',
    ],
    'change with no fill before': [{ kind: 'change', maxPercent: 0 }, '3 rows, no fill before'],
  };
  it('pass, each for its own reason', async () => {
    const checks = Object.values(PASSING).map(([check]) => check);
    assert.equal((await filledBy(checks)).rows, 3);
    assert.deepEqual(
      (await newest()).checks.map(({ passed, seen }) => ({ passed, seen })),
      Object.values(PASSING).map(([, seen]) => ({ passed: true, seen })),
    );
  });

  const FAILING: Readonly<Record<string, readonly [check: Check, message: RegExp]>> = {
    'a value that is not accepted': [
      { kind: 'accepted', column: 'code', values: ['EUR'] },
      /accepted \(code\): 1 not accepted\./,
    ],
    'an accepted value that the length would cut to one': [
      { kind: 'accepted', column: 'code', values: ['EURO', 'USDT'] },
      /accepted \(code\): 2 not accepted/,
    ],
    'an enum value that is not accepted': [
      { kind: 'accepted', column: 'mood', values: ['low'] },
      /accepted \(mood\): 1 not/,
    ],
    'values out of both ends': [
      { kind: 'range', column: 'n', min: '2', max: '1' },
      /range \(n\): 1 below 2, 1 above 1\./,
    ],
    'a bound that the scale would round': [
      { kind: 'range', column: 'price', min: '1.251' },
      /range \(price\): 1 below 1\.251/,
    ],
    'a row of an SQL check': [
      {
        kind: 'sql',
        query: query('SELECT n FROM target WHERE day >= :date AND day < :end_date AND n >= 1'),
        name: 'small n',
      },
      /sql \(small n\): 2 rows/,
    ],
    'very many rows': [
      { kind: 'sql', query: query('SELECT FROM generate_series(1, 5000)') },
      /sql \(SELECT FROM generate_series\(1, 5000\)\): more than 1000 rows/,
    ],
  };
  it('NaN is out of every range', async () => {
    await test.sql(`CREATE DOMAIN rate AS float8; ALTER TABLE target ADD real float4, ADD rate rate;
      ALTER TABLE source ADD real float4, ADD rate rate;
      UPDATE source SET price = 'NaN', ratio = 'NaN', real = 'NaN', rate = 'NaN' WHERE n = 1;
      UPDATE source SET real = 1, rate = 1 WHERE n = 2`);
    for (const column of ['price', 'ratio', 'real', 'rate']) {
      const above = await failsAs(filledBy([{ kind: 'range', column, min: '0' }]), 'CheckFailed');
      assert.match(above.message, new RegExp(`range \\(${column}\\): 1 NaN\\.`));
      const below = await failsAs(filledBy([{ kind: 'range', column, max: '1000' }]), 'CheckFailed');
      assert.match(below.message, new RegExp(`range \\(${column}\\): 1 above 1000\\.`));
    }
  });

  for (const [what, [check, message]] of Object.entries(FAILING)) {
    it(`${what}: CheckFailed, and the old rows stand; as a warning it is let through and recorded`, async () => {
      const before = await held();
      const failure = await failsAs(filledBy([check]), 'CheckFailed');
      assert.match(failure.message, message);
      assert.deepEqual(await held(), before);
      assert.deepEqual(await fills(test), []);

      const outcome = await filledBy([
        { ...check, severity: 'warn' },
        { kind: 'rows', min: 1 },
      ]);
      assert.equal(outcome.rows, 3);
      const { checks, warnings } = await newest();
      const [name = ''] = /(?:accepted|range|sql) \(.*\)(?=:)/.exec(failure.message) ?? [];
      assert.deepEqual(warnings, [`check: ${name}`]);
      assert.deepEqual(outcome.warnings, warnings);
      assert.deepEqual(
        checks.map(({ passed, severity }) => ({ passed, severity })),
        [
          { passed: false, severity: 'warn' },
          { passed: true, severity: undefined },
        ],
      );
    });
  }

  it('a warning beside a check that fails lets nothing through', async () => {
    const failure = await failsAs(
      filledBy([
        { kind: 'range', column: 'n', min: '5', severity: 'warn' },
        { kind: 'rows', min: 9 },
      ]),
      'CheckFailed',
    );
    assert.match(failure.message, /the check rows \(min 9\): 3 rows\./);
    assert.doesNotMatch(failure.message, /range/);
  });

  it('change: against the rows of the last fill, whatever failed since', async () => {
    await filledBy([]);
    await test.sql(`INSERT INTO source (day, n) VALUES ('${KEY}', 3)`);
    const failure = await failsAs(filledBy([{ kind: 'change', maxPercent: 33 }]), 'CheckFailed');
    assert.match(failure.message, /change \(max 33 %\): 4 rows, 3 before: 33\.3 % more\./);
    await filledBy([{ kind: 'change', maxPercent: 33.4 }]);
    assert.equal((await newest()).checks[0]?.seen, '4 rows, 3 before: 33.3 % more');
    await test.sql('DELETE FROM source');
    await failsAs(filledBy([{ kind: 'change', maxPercent: 99.9 }]), 'CheckFailed');
    await filledBy([{ kind: 'change', maxPercent: 100 }]);
    assert.equal((await newest()).checks[0]?.seen, '0 rows, 4 before: 100 % fewer');
    await test.sql(`INSERT INTO source (day, n) VALUES ('${KEY}', 3)`);
    await filledBy([{ kind: 'change', maxPercent: 0 }]);
    assert.equal((await newest()).checks[0]?.seen, '1 row, none before');
  });

  const REFUSED: Readonly<
    Record<string, readonly [check: Check, type: 'InvalidPipeline' | 'SchemaMismatch', message: RegExp]>
  > = {
    'accepted values that are none of the type': [
      { kind: 'accepted', column: 'n', values: ['1', 'one'] },
      'InvalidPipeline',
      /check accepted \(n\) of target has a value that the type integer of the column "n" cannot read/,
    ],
    'an accepted value that the enum lacks': [
      { kind: 'accepted', column: 'mood', values: ['middling'] },
      'InvalidPipeline',
      /accepted \(mood\).*the type mood/,
    ],
    'a bound that is none of the type': [
      { kind: 'range', column: 'day', min: '2024-02-30' },
      'InvalidPipeline',
      /range \(day\).*the type date/,
    ],
    'a type that has no order': [
      { kind: 'range', column: 'doc', min: '1' },
      'SchemaMismatch',
      /range \(doc\).*operator does not exist/,
    ],
    'a type that has no equality': [
      { kind: 'unique', columns: ['n', 'doc'] },
      'SchemaMismatch',
      /unique \(n, doc\) of target: .*equality/,
    ],
    'an unknown column of accepted': [
      { kind: 'accepted', column: 'nn', values: ['1'] },
      'SchemaMismatch',
      /accepted \(nn\).*"nn"/,
    ],
    'an unknown column of range': [{ kind: 'range', column: 'nn', min: '1' }, 'SchemaMismatch', /range \(nn\).*"nn"/],
    'a query that reads no table': [
      { kind: 'sql', query: query('SELECT FROM nowhere') },
      'SchemaMismatch',
      /check sql \(SELECT FROM nowhere\) of target: .*relation "nowhere" does not exist/,
    ],
    'a query that misspells': [
      { kind: 'sql', query: query('SELECT FROM target WHER n'), name: 'typo' },
      'InvalidPipeline',
      /sql \(typo\).*syntax error/,
    ],
  };
  for (const [what, [check, type, message]] of Object.entries(REFUSED)) {
    it(`${what}: ${type}, before a row moves`, async () => {
      const sent: string[] = [];
      const failure = await failsAs(
        withStatements({ before: ({ kind }) => void sent.push(kind) }, () => filledBy([check])),
        type,
      );
      assert.match(failure.message, message);
      assert.ok(failure.final);
      assert.ok(sent.includes('look') && !sent.includes('delete'), sent.join(' '));
    });
  }

  it('whose query fails on a row: DataError names the check, and no value of the row', async () => {
    const check: Check = { kind: 'sql', query: query('SELECT FROM target WHERE code::int > 0') };
    const failure = await failsAs(filledBy([check]), 'DataError');
    assert.match(
      failure.message,
      /^The check sql \(SELECT FROM target WHERE code::int > 0\) of target: PostgreSQL answered 22P02/,
    );
    assert.doesNotMatch(failure.message, /EUR|USD/);
  });

  it('are counted in one pass over the window, with what the fill counts anyway', async () => {
    const counts: string[] = [];
    const checks: Check[] = [
      { kind: 'rows', min: 1 },
      { kind: 'not_null', columns: ['day'] },
      { kind: 'accepted', column: 'code', values: ['EUR', 'USD'] },
      { kind: 'range', column: 'n', min: '0' },
      { kind: 'change', maxPercent: 10 },
      { kind: 'sum', column: 'n', equals: query('SELECT 3') },
    ];
    await withStatements(
      {
        before: ({ kind, text }) =>
          void (text.includes('FROM "target" WHERE "day"') && kind !== 'delete' && counts.push(kind)),
      },
      () => filledBy(checks, "SELECT * FROM source WHERE day = DATE '2024-02-29'"),
    );
    assert.deepEqual(counts, ['kept', 'count']);
  });

  it('of a TypeScript pipeline are the same', async () => {
    const pipeline = typescriptPipeline(() => [{ day: KEY, n: 5 }], {
      checks: [
        { kind: 'range', column: 'n', max: '4', severity: 'warn' },
        { kind: 'sql', query: query('SELECT FROM target WHERE day = :date AND n <> 5') },
        { kind: 'change', maxPercent: 5 },
      ],
    });
    const outcome = await withWorker(test, (database) => fill(database, fillRequest(pipeline)));
    assert.deepEqual(outcome.warnings, ['check: range (n)']);
  });

  it('may read the target, and a query that reads it itself is refused all the same', async () => {
    await test.sql('CREATE VIEW seen AS SELECT * FROM target');
    await test.sql(`GRANT SELECT ON seen TO ${test.workerRole}`);
    const check: Check = { kind: 'sql', query: query('SELECT FROM seen WHERE n = 77') };
    assert.equal((await filledBy([check])).rows, 3);
    await failsAs(filledBy([check], `SELECT day, n FROM seen WHERE day = :date`), 'InvalidPipeline');
  });
});
