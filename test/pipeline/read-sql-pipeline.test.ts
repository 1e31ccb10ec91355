import assert from 'node:assert/strict';
import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { readSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';

const file = { name: 'daily', path: '/project/pipelines/daily.sql', shown: 'pipelines/daily.sql' };

const read = (content: string): Promise<SqlPipeline> => readSqlPipeline(file, content);

/** A file with a header that is right, and this query. */
const withQuery = (query: string, header = 'partition: { column: d, by: day }'): Promise<SqlPipeline> =>
  read(`-- repave\n-- target: t\n-- ${header}\n${query}`);

/** A file with these header lines behind the two that must be there. */
const withSettings = (...lines: string[]): Promise<SqlPipeline> =>
  read(
    ['repave', 'target: t', 'partition: { column: d, by: day }', ...lines].map((line) => `-- ${line}\n`).join('') +
      'SELECT 1',
  );

const refused = (reading: Promise<unknown>, message: RegExp): Promise<void> =>
  assert.rejects(reading, (error: Error & { type?: string }) => {
    assert.equal(error.type, 'InvalidPipeline', error.stack);
    assert.match(error.message, message);
    return true;
  });

describe('SQL pipeline: what is read', () => {
  it('reads every setting', async () => {
    const { query, fingerprint, ...settings } = await withSettings(
      'start: 1997-01-01',
      'checks: [{ rows: { min: 1, max: 9 } }, { unique: [d, k] }, { not_null: [k] }]',
      'concurrency: 8',
      'retry: { attempts: 5, giveUpAfter: 2d }',
      'timeout: 90s',
      'lookback: 3',
      'version: 1.10',
      'allowEmpty: false',
      'database: WAREHOUSE_URL',
    );
    assert.equal(query.text, 'SELECT 1');
    assert.match(fingerprint, /^v1:[0-9a-f]{64}$/);
    assert.deepEqual(settings, {
      kind: 'sql',
      name: 'daily',
      file: '/project/pipelines/daily.sql',
      target: { table: 't' },
      partition: { column: 'd', by: 'day', zone: 'UTC' },
      start: '1997-01-01',
      checks: [
        { kind: 'rows', min: 1, max: 9 },
        { kind: 'unique', columns: ['d', 'k'] },
        { kind: 'not_null', columns: ['k'] },
      ],
      concurrency: 8,
      retry: { attempts: 5, giveUpAfterMs: 172_800_000 },
      timeoutMs: 90_000,
      lookback: 3,
      version: '1.10',
      allowEmpty: false,
      database: 'WAREHOUSE_URL',
    });
  });

  it('has the defaults', async () => {
    const pipeline = await withSettings();
    assert.deepEqual(pipeline.checks, []);
    assert.deepEqual(pipeline.retry, { attempts: 3, giveUpAfterMs: 86_400_000 });
    assert.equal(pipeline.timeoutMs, 3_600_000);
    assert.equal(pipeline.lookback, 0);
    assert.equal(pipeline.allowEmpty, true);
    assert.equal(pipeline.database, 'DATABASE_URL');
    assert.equal(pipeline.start, undefined);
  });

  it('takes names exactly as they are written', async () => {
    const targets: [string, object][] = [
      ['Raw.Order', { schema: 'Raw', table: 'Order' }],
      [`'"Raw"."Order"'`, { schema: 'Raw', table: 'Order' }],
      [`'"a.b"."c""d"'`, { schema: 'a.b', table: 'c"d' }],
      ['"mixedCase"', { table: 'mixedCase' }],
    ];
    for (const [text, target] of targets) {
      const pipeline = await read(`-- repave\n-- target: ${text}\n-- partition: { column: 'a"b', by: day }\nSELECT 1`);
      assert.deepEqual(pipeline.target, target);
      assert.equal(pipeline.partition.column, 'a"b');
    }
  });

  it('reads nested YAML, other line ends, a byte-order mark, comments before and blank lines behind the header', async () => {
    const text =
      '-- Licence: ours\n\n-- repave\n-- target: t\n-- partition:\n--   column: d\n--   by: month\n-- start: 2024-02\n\n-- The rows:\nSELECT :key';
    for (const content of [text, `\uFEFF${text}`, text.replaceAll('\n', '\r\n')]) {
      const pipeline = await read(content);
      assert.deepEqual(pipeline.partition, { column: 'd', by: 'month', zone: 'UTC' });
      assert.equal(pipeline.start, '2024-02');
      assert.match(pipeline.query.text, /^-- The rows:\r?\nSELECT \(\$1::pg_catalog.text\)$/);
    }
  });

  it('passes over prose in the header, as formatters leave it there, and reads the settings behind it', async () => {
    const pipeline = await withSettings(
      '# by day',
      'Sales by day, without returns.',
      'hour|day; zone: UTC unless given',
      '',
      'lookback: 2',
    );
    assert.equal(pipeline.lookback, 2);
  });

  it('reads a year as a key, not as a number', async () => {
    const pipeline = await read(
      '-- repave\n-- target: t\n-- partition: { column: d, by: year }\n-- start: 1997\nSELECT 1',
    );
    assert.equal(pipeline.start, '1997');
  });
});

describe('SQL pipeline: parameters', () => {
  it('are bound with their types, each name once, and nothing else changes', async () => {
    const { query } = await withQuery(
      "SELECT  :date,\n\t:end_date , :start::text, :end, :key, d::date, ':date' -- :date\nFROM s WHERE d>=:date AND d<:END_DATE",
    );
    assert.deepEqual(query.parameters, ['date', 'end_date', 'start', 'end', 'key']);
    assert.equal(
      query.text,
      'SELECT  ($1::pg_catalog.date),\n\t($2::pg_catalog.date) , ($3::pg_catalog.timestamptz)::text, ($4::pg_catalog.timestamptz), ' +
        "($5::pg_catalog.text), d::date, ':date' -- :date\nFROM s WHERE d>=($1::pg_catalog.date) AND d<($2::pg_catalog.date)",
    );
  });

  it('refuses unknown and positional ones, with what there are', async () => {
    await refused(
      withQuery('SELECT *\nFROM s\nWHERE d = :dat'),
      /^pipelines\/daily\.sql:6: unknown parameter :dat\. Did you mean date\? There are :start, :end, :date, :end_date, :key\.$/,
    );
    await refused(
      withQuery('SELECT *\nFROM s WHERE d = $1'),
      /^pipelines\/daily\.sql:5: \$1 is no parameter: expected :start/,
    );
  });

  it('refuses dates in a pipeline by hour', async () => {
    for (const name of ['date', 'end_date']) {
      await refused(
        withQuery(`SELECT :${name}`, 'partition: { column: d, by: hour }'),
        /:4: :(end_)?date says nothing in a pipeline by hour/,
      );
    }
    assert.deepEqual((await withQuery('SELECT :start, :end', 'partition: { column: d, by: hour }')).query.parameters, [
      'start',
      'end',
    ]);
  });
});

describe('SQL pipeline: one SELECT', () => {
  const fine: [string, string?][] = [
    ['SELECT 1 -- note'],
    ['SELECT 1;', 'SELECT 1'],
    ['SELECT 1; -- x', 'SELECT 1 -- x'],
    ['SELECT 1 ; ;\n/* x */ -- y\n', 'SELECT 1  \n/* x */ -- y'],
    ["SELECT $$ ; :start $$, $q$it's$q$"],
    ['WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b'],
    ['WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT * FROM t'],
    ['WITH t AS (SELECT * FROM s) SELECT * FROM t'],
    ["SELECT '{{x}}', ':start', a::date FROM s"],
    ['SELECT 1 UNION ALL SELECT 2 ORDER BY 1'],
    ['(SELECT 1)'],
    ['SELECT t FROM s AS t'],
    ['SELECT other.t.x FROM other.t'],
  ];
  for (const [query, sent = query] of fine) {
    it(`takes ${JSON.stringify(query)}`, async () => assert.equal((await withQuery(query)).query.text, sent));
  }

  const wrong: [string, RegExp][] = [
    ['', /:4: no query: expected one SELECT/],
    ['\n-- nothing\n;', /:4: no query/],
    ['SELECT 1;\nSELECT 2', /:5: a second statement begins here: expected one SELECT/],
    ['SELECT 1; DROP TABLE s;', /:4: a second statement/],
    ['\n\nINSERT INTO s VALUES (1)', /:6: the query is an INSERT: expected one SELECT/],
    ['DELETE FROM s', /:4: the query is a DELETE: expected one SELECT/],
    ['CREATE TABLE x AS SELECT 1', /:4: the query is a CREATE TABLE AS: expected one SELECT/],
    ['SELECT 1\nINTO x', /:5: SELECT INTO makes a table/],
    ['WITH a AS (\n  DELETE FROM s RETURNING *\n) SELECT * FROM a', /:5: the query holds a DELETE/],
    ['SELECT (SELECT 1 FROM (WITH a AS (INSERT INTO s VALUES (1) RETURNING *) SELECT * FROM a) b)', /:4: /],
    ['WITH a AS (UPDATE s SET x = 1 RETURNING *) SELECT * FROM a', /:4: the query holds an UPDATE/],
    [
      'WITH a AS (MERGE INTO s USING u ON true WHEN MATCHED THEN DELETE RETURNING *) SELECT 1',
      /:4: the query holds a MERGE/,
    ],
    ['SELECT * FROM s FOR UPDATE', /:4: the query locks rows/],
    ['SELECT * FROM (SELECT * FROM s FOR SHARE) x', /:4: the query locks rows/],
    ['SELECT *\nFROM s\nJOIN t ON true', /:6: the query reads its own target t, /],
    ['SELECT * FROM public.t', /:4: the query reads its own target t, /],
    ['SELECT * FROM "t"', /reads its own target/],
    ['SELECT * FROM T', /reads its own target/],
    ['SELECT 1 WHERE EXISTS (SELECT FROM t)', /reads its own target/],
    ['WITH t AS (SELECT * FROM t) SELECT * FROM t', /reads its own target/],
    ['WITH a AS (SELECT 1), t AS (SELECT 2) SELECT * FROM public.t', /reads its own target/],
    ['SELECT 1 UNION SELECT * FROM t', /reads its own target/],
    ["SELECT 'é',\n  1 frm s, 2\n", /:5: the query is not SQL that PostgreSQL can parse: syntax error at or near "s"/],
    [
      "SELECT '\u{1F600}\u{1F600}', 'x\n",
      /:4: the query is not SQL that PostgreSQL can parse: unterminated quoted string/,
    ],
    ['SELECT {{ x }}', /:4: the query is not SQL that PostgreSQL can parse: syntax error at or near "\{"/],
  ];
  for (const [query, message] of wrong) {
    it(`refuses ${JSON.stringify(query)}`, () => refused(withQuery(query), message));
  }

  it('compares a target in a schema with what is read from there', async () => {
    const mart = (query: string): Promise<SqlPipeline> =>
      read(`-- repave\n-- target: mart.sales\n-- partition: { column: d, by: day }\n${query}`);
    await refused(mart('SELECT * FROM mart.sales'), /reads its own target mart\.sales/);
    assert.ok(await mart('SELECT * FROM sales'));
    assert.ok(await mart('SELECT * FROM raw.sales'));
  });
});

describe('SQL pipeline: a header that is wrong', () => {
  const wrong: [string, () => Promise<unknown>, RegExp][] = [
    ['no header', () => read('SELECT 1'), /^pipelines\/daily\.sql:1: no header: expected the line `-- repave`/],
    ['another comment', () => read('-- hello\nSELECT 1'), /:1: no header/],
    ['an empty file', () => read(''), /:1: no header/],
    ['a block comment', () => read('/* repave\ntarget: t */ SELECT 1'), /not in \/\* … \*\//],
    ['a header without settings', () => read('-- repave\nSELECT 1'), /:1: the header holds no settings/],
    ['a missing target', () => read('-- repave\n-- partition: { column: d, by: day }\nSELECT 1'), /:2: target is missing: expected a table such as/],
    ['an unknown setting', () => withSettings('tarjet: x'), /:4: unknown setting "tarjet"\. Did you mean target\? There are: target, partition, /],
    ['a misspelt setting that is needed', () => read('-- repave\n-- partition: { column: d, by: day }\n-- targett: t\nSELECT 1'), /:3: unknown setting "targett"\. Did you mean target\?.* \(1 more after that\)$/],
    ['rows in SQL', () => withSettings('columns: [a]'), /:4: unknown setting "columns"/],
    ['an unknown nested setting', () => read('-- repave\n-- target: t\n-- partition: { column: d, by: day, zon: UTC }\nSELECT 1'), /:3: unknown setting "zon"\. Did you mean zone\? There are: column, by, zone\.$/],
    ['flattened indentation', () => read('-- repave\n-- target: t\n-- partition:\n-- column: d\n-- by: day\nSELECT 1'), /If a formatter removed the indentation, write it on one line: partition: \{ column: …, by: … \}/],
    ['a setting without its colon', () => withSettings('timeout 90s'), /:4: the header is not YAML: .* Comments in it begin with #/],
    ['a misspelt setting without its colon', () => withSettings('timout 90s'), /:4: the header is not YAML/],
    ['an alias', () => withSettings('lookback: &n 1', 'concurrency: *n'), /:1: the header uses a YAML alias \(\*name\): write the value out/],
    ['prose that looks like a setting', () => withSettings('Note: these are the rows'), /:4: unknown setting "Note"/],
    ['a setting twice', () => withSettings('target: u'), /:4: the header is not YAML: Map keys must be unique/],
    ['a unit there is not', () => read('-- repave\n-- target: t\n-- partition: { column: d, by: fortnight }\nSELECT 1'), /:3: partition\.by is "fortnight": expected one of hour, day, week, month, quarter, year\./],
    ['a zone there is not', () => read('-- repave\n-- target: t\n-- partition: { column: d, by: day, zone: Mars }\nSELECT 1'), /partition\.zone is "Mars": expected an IANA time zone such as/],
    ['a start of another unit', () => withSettings('start: 1997-01'), /:4: start is "1997-01", which is a month: expected a day such as/],
    ['a duration without a unit', () => withSettings('timeout: 90'), /:4: timeout is 90 \(a number\): expected a duration such as 90s, 15m, 2h or 1d/],
    ['too many at once', () => withSettings('concurrency: 5000'), /:4: concurrency is 5000 \(a number\): expected a whole number from 1 to 100/],
    ['no attempts', () => withSettings('retry: { attempts: 0 }'), /:4: retry\.attempts is 0 \(a number\): expected a whole number from 1/],
    ['two checks in one', () => withSettings('checks:', '  - unique: [a]', '    not_null: [b]'), /:5: checks\[0\] is an object: expected one check an entry/],
    ['an unknown check', () => withSettings('checks: [{ notnull: [a] }]'), /:4: unknown check "notnull"\. Did you mean not_null\?/],
    ['checks that are no list', () => withSettings('checks: { rows: { min: 1 } }'), /:4: checks is an object: expected a list such as/],
    ['bounds the wrong way round', () => withSettings('checks: [{ rows: { min: 3, max: 2 } }]'), /a min that is not above max/],
    ['no bounds', () => withSettings('checks: [{ rows: {} }]'), /min, max or both/],
    ['a column twice', () => withSettings('checks: [{ unique: [a, a] }]'), /each column once/],
    ['a URL for a database, not shown', () => withSettings('database: postgres://u:secret@h/d'), /:4: database is a URL: expected the name of an environment variable such as DATABASE_URL\.$/],
    ['a table of three parts', () => read('-- repave\n-- target: a.b.c\n-- partition: { column: d, by: day }\nSELECT 1'), /:2: target is "a\.b\.c": expected a table/],
    ['allowEmpty as a text', () => withSettings('allowEmpty: "no"'), /allowEmpty is "no": expected true or false/],
  ]; // prettier-ignore
  for (const [what, reading, message] of wrong) {
    it(what, () => refused(reading(), message));
  }

  it('says how many more there are', () =>
    refused(withSettings('timeout: x', 'lookback: -1'), /timeout is "x".*\(1 more after that\)$/));
});
