import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ChangedQuery } from '../../src/pipeline/pipeline.js';
import { readSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';

const file = { name: 'daily', path: '/project/pipelines/daily.sql', shown: 'pipelines/daily.sql' };

/** What `changed: rows` makes of a query. */
async function rowsOf(query: string): Promise<ChangedQuery> {
  const header = '-- repave\n-- target: daily\n-- partition: { column: day, by: day }\n-- changed: rows\n';
  const { changed } = await readSqlPipeline(file, header + query);
  assert.ok(changed);
  return changed;
}

const sum = (name: string): string =>
  `coalesce(pg_catalog.sum(pg_catalog.hashtextextended(${name}.xmin::pg_catalog.text, ${name}.tableoid::pg_catalog.int8)), 0)`;
const counting = (names: readonly string[], clauses: string): string =>
  `SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), ${names.map(sum).join(', ')})\n${clauses}`;

const DAY = '($1::pg_catalog.date)';

describe('`changed: rows` of a query', () => {
  for (const [what, query, names, clauses, tables] of [
    [
      'one table',
      'SELECT a AS day FROM sales WHERE a = :date',
      ['"sales"'],
      `FROM sales WHERE a = ${DAY}`,
      ['"sales"'],
    ],
    ['no condition', 'SELECT a AS day FROM sales', ['"sales"'], 'FROM sales', ['"sales"']],
    [
      'a schema, and ONLY',
      'SELECT 1 FROM ONLY shop.sales;',
      ['"shop"."sales"'],
      'FROM ONLY shop.sales',
      ['"shop"."sales"'],
    ],
    [
      'names as PostgreSQL folds them',
      'SELECT 1 FROM Shop."Sa""les"',
      ['"shop"."Sa""les"'],
      'FROM Shop."Sa""les"',
      ['"shop"."Sa""les"'],
    ],
    [
      'joins by their aliases',
      'SELECT 1 FROM sales s JOIN shop.items AS "I" USING (id) LEFT JOIN rates ON rates.d = s.d, days d WHERE s.d = :date',
      ['"s"', '"I"', '"rates"', '"d"'],
      `FROM sales s JOIN shop.items AS "I" USING (id) LEFT JOIN rates ON rates.d = s.d, days d WHERE s.d = ${DAY}`,
      ['"sales"', '"shop"."items"', '"rates"', '"days"'],
    ],
    [
      'joins in parentheses',
      'SELECT 1 FROM (a CROSS JOIN (b NATURAL JOIN c))',
      ['"a"', '"b"', '"c"'],
      'FROM (a CROSS JOIN (b NATURAL JOIN c))',
      ['"a"', '"b"', '"c"'],
    ],
    [
      'what stands behind WHERE left out',
      'SELECT DISTINCT ON (d) d AS day, sum(x) OVER w FROM t WHERE d = :date GROUP BY d, x HAVING count(*) > 1 WINDOW w AS (ORDER BY d) ORDER BY d LIMIT 5 OFFSET 1',
      ['"t"'],
      `FROM t WHERE d = ${DAY}`,
      ['"t"'],
    ],
    ['FETCH', 'SELECT d FROM t FETCH FIRST 3 ROWS ONLY', ['"t"'], 'FROM t', ['"t"']],
    [
      'a FROM that is none',
      `SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b, extract(year FROM d), 'x FROM y', t.from, c AS from /* FROM z */ FROM t
       WHERE a IS DISTINCT FROM b AND substring(c FROM 1 FOR 2) = 'x ORDER BY' AND t.group = 1 AND d = ANY (ARRAY[:date])`,
      ['"t"'],
      `FROM t
       WHERE a IS DISTINCT FROM b AND substring(c FROM 1 FOR 2) = 'x ORDER BY' AND t.group = 1 AND d = ANY (ARRAY[${DAY}])`,
      ['"t"'],
    ],
    [
      'parameters of FROM and WHERE alone',
      'SELECT :key, :start FROM t WHERE a < :end AND b >= :start',
      ['"t"'],
      'FROM t WHERE a < ($1::pg_catalog.timestamptz) AND b >= ($2::pg_catalog.timestamptz)',
      ['"t"'],
    ],
    ['a comment at the end', 'SELECT 1 FROM t -- all of it\nGROUP BY 1', ['"t"'], 'FROM t -- all of it', ['"t"']],
  ] as const) {
    it(`takes ${what}`, async () => {
      const { query: built, tables: read } = await rowsOf(query);
      assert.equal(built.text, counting(names, clauses));
      assert.deepEqual(read, tables);
    });
  }

  for (const [what, query, because] of [
    ['a UNION', 'SELECT 1 FROM a UNION ALL SELECT 1 FROM b', /unites several SELECTs/],
    ['a WITH', 'WITH c AS (SELECT 1 FROM a) SELECT 1 FROM c', /has a WITH/],
    ['VALUES', 'VALUES (1)', /reads no table/],
    ['no table', 'SELECT :date AS day', /reads no table/],
    ['a subquery in FROM', 'SELECT 1 FROM (SELECT 1 FROM a) q', /has a subquery in FROM/],
    ['a subquery in a join', 'SELECT 1 FROM a JOIN LATERAL (SELECT 1 FROM b) q ON true', /has a subquery in FROM/],
    ['a subquery in WHERE', 'SELECT 1 FROM a WHERE EXISTS (SELECT FROM b)', /has a subquery/],
    ['a subquery in ON', 'SELECT 1 FROM a JOIN c ON a.x IN (SELECT x FROM b)', /has a subquery/],
    // It reads b, whatever rows a has.
    ['a subquery in the list', 'SELECT (SELECT max(x) FROM b) FROM a', /has a subquery/],
    ['a subquery in HAVING', 'SELECT 1 FROM a GROUP BY x HAVING count(*) > (SELECT count(*) FROM b)', /has a subquery/],
    ['a function', 'SELECT 1 FROM generate_series(1, 2)', /calls a function in FROM/],
    ['a sample', 'SELECT 1 FROM a TABLESAMPLE system (10)', /reads a sample of a table/],
    ['XML', `SELECT 1 FROM a, XMLTABLE('/r' PASSING a.x COLUMNS i int)`, /something else than tables/],
    ['a join with a name', 'SELECT 1 FROM (a JOIN b ON true) AS j', /gives a join a name/],
    ['a column called xmin', 'SELECT 1 FROM a AS t (xmin)', /calls a column xmin/],
    ['a column called tableoid', 'SELECT 1 FROM a AS t (x, tableoid)', /calls a column tableoid/],
  ] as const) {
    it(`refuses ${what}`, async () => {
      await assert.rejects(rowsOf(query), (error: Error & { type?: string }) => {
        assert.equal(error.type, 'InvalidPipeline');
        assert.match(error.message, /daily\.sql:4: changed is rows, and the query /);
        assert.match(error.message, because);
        assert.match(error.message, /Give a query of one value/);
        return true;
      });
    });
  }

  it('cuts FROM and WHERE out of whatever stands around them', async () => {
    const columns = fc.constantFrom(
      'a.x',
      'a.from',
      'a.x AS from',
      'a.x AS where',
      `'it''s FROM b WHERE'`,
      '$$ FROM $$',
      '"FROM"',
      'a.x IS DISTINCT FROM a.y',
      `extract(day FROM a.d)`,
      `trim(BOTH ' ' FROM a.t)`,
      'count(*) FILTER (WHERE a.x > 1)',
      'a.x[1:2]',
      '/* FROM b */ 1',
      ':key',
      'percentile_cont(0.5) WITHIN GROUP (ORDER BY a.x)',
      'sum(a.x) OVER (PARTITION BY a.y ORDER BY a.x)',
      '(a.x)::int',
      `E'\\' FROM'`,
    );
    const froms = fc.constantFrom(
      'a',
      'ONLY a',
      's.b AS a',
      'a, b',
      'a LEFT JOIN b ON a.x IS NOT DISTINCT FROM b.x',
      '(a JOIN "From" ON a.group = "From".order)',
      'a JOIN b USING (x) AS u',
      'a /* WHERE */',
      'a JOIN b ON b.d = :date AND b.where',
    );
    const wheres = fc.constantFrom(
      '',
      'WHERE a.x IS DISTINCT FROM a.y',
      'WHERE a.d >= :date AND a.d < :end_date',
      `WHERE a.t = 'GROUP BY' AND a.limit > 1`,
      'WHERE (a.x, a.y) = (1, 2) -- ORDER BY\n',
      `WHERE substring(a.t FROM 1 FOR 2) = 'x'`,
      'WHERE a.for AND a.k = :key',
    );
    const ends = fc.constantFrom(
      '',
      'GROUP BY a.x',
      'GROUP BY 1 HAVING count(*) > 1',
      'ORDER BY a.x IS DISTINCT FROM a.y',
      'LIMIT 1',
      'WINDOW w AS (ORDER BY a.x)',
      ';',
      'OFFSET 2 ROWS FETCH NEXT ROW ONLY',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(columns, { minLength: 1, maxLength: 4 }),
        froms,
        wheres,
        ends,
        async (list, from, where, end) => {
          const { query } = await rowsOf(`SELECT ${list.join(', ')}\nFROM ${from} ${where} ${end}`);
          const [, ...rest] = query.text.split('\n');
          const read = rest.join('\n').replace(/\(\$\d+::pg_catalog\.(\w+)\)/g, ':$1');
          const types: Record<string, string> = { date: 'date', end_date: 'date', key: 'text' };
          const asked = `FROM ${from} ${where}`
            .trim()
            .replace(/:(\w+)/g, (_, name: string) => `:${types[name] ?? name}`);
          assert.equal(read, asked);
        },
      ),
      { numRuns: 500 },
    );
  });
});
