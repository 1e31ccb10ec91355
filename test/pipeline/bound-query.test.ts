import assert from 'node:assert/strict';
import { windowOf } from '../../src/calendar/window.js';
import type { ParameterName } from '../../src/pipeline/pipeline.js';
import { readSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const grid = { by: 'day', zone: 'Asia/Kolkata' } as const;
const window = windowOf(grid, '2024-02-29');
const values: Record<ParameterName, string> = { ...window, end_date: window.endDate };

describe('bound query: what PostgreSQL makes of it', () => {
  let database: TestDatabase;

  before(async () => {
    database = await createTestDatabase({ ledger: false });
    await database.sql(`CREATE TABLE s (d date, at timestamptz, note text)`);
    await database.sql(
      `INSERT INTO s SELECT d::date, d AT TIME ZONE 'Asia/Kolkata', to_char(d, 'DD') FROM generate_series('2024-02-27'::timestamp, '2024-03-02', '1 day') d`,
    );
  });
  after(() => database.drop());

  async function rowsOf(query: string): Promise<unknown[]> {
    const header = '-- repave\n-- target: t\n-- partition: { column: d, by: day, zone: Asia/Kolkata }\n';
    const read = await readSqlPipeline({ name: 'p', path: '/p.sql', shown: 'p.sql' }, header + query);
    const rows = await database.sql(
      `${read.query.text}\n`,
      read.query.parameters.map((name) => values[name]),
    );
    return rows.map((row) => Object.values(row));
  }

  const plain = 'SELECT note FROM s WHERE d >= :date AND d < :end_date';
  const same: string[] = [
    `${plain};`,
    `${plain} -- note`,
    `${plain} ; -- x`,
    `${plain} /* ; */ ;;`,
    'WITH a AS (SELECT * FROM s) SELECT note FROM a WHERE d>=:date AND d<:end_date',
    'SELECT note FROM s WHERE d BETWEEN:date AND:date',
    'SELECT note FROM s WHERE at >= :start AND at<:end',
    'SELECT note FROM s WHERE d::text=:key',
    'SELECT note FROM s WHERE d IN (:date, :date::date)',
    'SELECT note FROM s WHERE d = ANY (ARRAY[:date,:end_date]) AND NOT d=:end_date',
    'SELECT note FROM s WHERE d = (ARRAY[:end_date,:date])[2]',
    "SELECT note FROM s WHERE daterange(:date,:end_date,'[)')@>d",
    'SELECT note FROM s WHERE make_interval(days := d-:date) = make_interval(days => 0)',
  ];
  for (const query of same) {
    it(query, async () => assert.deepEqual(await rowsOf(query), [['29']]));
  }

  const texts: [string, unknown[]][] = [
    [
      "SELECT ':start' AS x, '{{x}}' AS y, a::date::text FROM (VALUES ('2024-01-01')) v (a)",
      [':start', '{{x}}', '2024-01-01'],
    ],
    ["SELECT E'it\\':start' || :key", ["it':start2024-02-29"]],
    ["SELECT E'a' -- :start\n  'b\\':end' || :key", ["ab':end2024-02-29"]],
    ["SELECT 'a\\' || :key || ':date'", ['a\\2024-02-29:date']],
    [
      'SELECT $$ :start $$ AS a, $a$ :end $$ $a$ AS b, /* :x /* :y */ :z */ :key',
      [' :start ', ' :end $$ ', '2024-02-29'],
    ],
    [`SELECT U&'\\0441:key', ":key" FROM (SELECT 1 AS ":key") q`, ['с:key', 1]],
    ['SELECT (ARRAY[1,2,3])[lo:hi] FROM (SELECT 2 AS lo, 3 AS hi) q', [[2, 3]]],
    ['SELECT (ARRAY[1,2,3])[lo:date] FROM (SELECT 2 AS lo, 3 AS date) q', [[2, 3]]],
    ['SELECT (ARRAY[1,2,3])[:n] FROM (SELECT 2 AS n) q', [[1, 2]]],
    ['SELECT (ARRAY[1,2,3])[length(:key) - 8: :end_date-:date + 2]', [[2, 3]]],
    ['SELECT 1--:key\n+2', [3]],
  ];
  for (const [query, expected] of texts) {
    it(JSON.stringify(query), async () => {
      const [row] = await rowsOf(query);
      assert.deepEqual(row, expected);
    });
  }
});
