import assert from 'node:assert/strict';
import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { readSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';

const file = { name: 'daily', path: '/project/pipelines/daily.sql', shown: 'pipelines/daily.sql' };

/** A file with these header lines behind the two that must be there, and this query. */
const withSettings = (lines: readonly string[], query = 'SELECT :date AS d'): Promise<SqlPipeline> =>
  readSqlPipeline(
    file,
    ['repave', 'target: t', 'partition: { column: d, by: day }', ...lines].map((line) => `-- ${line}\n`).join('') +
      query,
  );

const refused = (lines: readonly string[], message: RegExp, query?: string): Promise<void> =>
  assert.rejects(withSettings(lines, query), (error: Error & { type?: string }) => {
    assert.equal(error.type, 'InvalidPipeline', error.stack);
    assert.match(error.message, message);
    return true;
  });

describe('settings: what each gives', () => {
  it('source, scope, skipUnchanged, create, batch and formerly', async () => {
    const read = await withSettings([
      'source: SHOP_URL',
      'scope: { tenant: acme, shop: 7, live: true }',
      'skipUnchanged: true',
      'create: true',
      'batch: 30',
      'formerly: old/daily_sales',
    ]);
    const { source, scope, skipUnchanged, create, batch, formerly } = read;
    assert.deepEqual(
      { source, scope, skipUnchanged, create, batch, formerly },
      {
        source: 'SHOP_URL',
        scope: { tenant: 'acme', shop: '7', live: 'true' },
        skipUnchanged: true,
        create: true,
        batch: 30,
        formerly: 'old/daily_sales',
      },
    );
  });

  it('values of columns as they are written, where a number would be another value', async () => {
    const { scope, checks } = await withSettings([
      'scope: { id: 9007199254740993, plant: 0123, release: 1.0, live: TRUE, day: 2024-01-01, shop: 7, share: .5 }',
      'checks:',
      '  - accepted: { id: [9007199254740993, 1e3, 0x1F, "007"], paid: [True, false] }',
      '  - range: { id: { min: -9223372036854775808, max: 9223372036854775807 }, share: { min: 0.10, max: 1e6 } }',
    ]);
    assert.deepEqual(scope, {
      id: '9007199254740993',
      plant: '0123',
      release: '1.0',
      live: 'TRUE',
      day: '2024-01-01',
      shop: '7',
      share: '.5',
    });
    assert.deepEqual(checks, [
      { kind: 'accepted', column: 'id', values: ['9007199254740993', '1e3', '0x1F', '007'] },
      { kind: 'accepted', column: 'paid', values: ['True', 'false'] },
      { kind: 'range', column: 'id', min: '-9223372036854775808', max: '9223372036854775807' },
      { kind: 'range', column: 'share', min: '0.1', max: '1000000' },
    ]);
  });

  it('nothing of what is not set', async () => {
    const read = await withSettings([]);
    for (const name of ['source', 'scope', 'ready', 'skipUnchanged', 'create', 'batch', 'formerly'])
      assert.ok(!(name in read), name);
  });

  it('every check, with its severity', async () => {
    const { checks } = await withSettings([
      'checks:',
      '  - rows: { min: 1, max: 9 }',
      '  - change: { maxPercent: 12.5 }',
      '    severity: warn',
      '  - unique: [d, k]',
      '  - not_null: [k]',
      '  - accepted: { currency: [EUR, USD], paid: [true], grade: [1, 2.5] }',
      '  - range: { revenue: { min: 0 }, day: { min: 2024-01-01, max: "2024-12-31" } }',
      '  - sql: SELECT FROM t WHERE d < :date',
      '    name: nothing older',
      '    severity: fail',
    ]);
    const query = {
      text: 'SELECT FROM t WHERE d < ($1::pg_catalog.date)',
      parameters: ['date'],
      pieces: ['SELECT FROM t WHERE d < ', ''],
      slots: [{ name: 'date', type: 'pg_catalog.date' }],
    };
    assert.deepEqual(checks, [
      { kind: 'rows', min: 1, max: 9 },
      { severity: 'warn', kind: 'change', maxPercent: 12.5 },
      { kind: 'unique', columns: ['d', 'k'] },
      { kind: 'not_null', columns: ['k'] },
      { kind: 'accepted', column: 'currency', values: ['EUR', 'USD'] },
      { kind: 'accepted', column: 'paid', values: ['true'] },
      { kind: 'accepted', column: 'grade', values: ['1', '2.5'] },
      { kind: 'range', column: 'revenue', min: '0' },
      { kind: 'range', column: 'day', min: '2024-01-01', max: '2024-12-31' },
      { severity: 'fail', kind: 'sql', query, name: 'nothing older' },
    ]);
  });

  it('the queries of sum, whose parameters count on behind the pipeline’s own', async () => {
    const { query, checks } = await withSettings(
      [
        'checks:',
        '  - sum: { a: "SELECT sum(a) FROM s WHERE at >= :start AND d < :end_date", b: SELECT sum(b) FROM s WHERE k = :key AND at < :start }',
      ],
      'SELECT :date AS d, :end_date AS e',
    );
    assert.deepEqual(query.parameters, ['date', 'end_date']);
    const [first, second] = checks;
    assert.ok(first?.kind === 'sum' && second?.kind === 'sum');
    assert.deepEqual(
      [first.column, first.equals.text, first.equals.parameters],
      [
        'a',
        'SELECT sum(a) FROM s WHERE at >= ($3::pg_catalog.timestamptz) AND d < ($2::pg_catalog.date)',
        ['date', 'end_date', 'start'],
      ],
    );
    assert.deepEqual(
      [second.column, second.equals.text, second.equals.parameters],
      [
        'b',
        'SELECT sum(b) FROM s WHERE k = ($4::pg_catalog.text) AND at < ($3::pg_catalog.timestamptz)',
        ['date', 'end_date', 'start', 'key'],
      ],
    );
    assert.deepEqual(
      first.equals.slots.map(({ name }) => name),
      ['start', 'end_date'],
    );
    assert.equal(first.equals.pieces.length, 3);
  });

  it('changed as a query', async () => {
    const asked = await withSettings(['changed: SELECT max(at) FROM loads WHERE d = :date']);
    assert.equal(asked.changed?.query.text, 'SELECT max(at) FROM loads WHERE d = ($1::pg_catalog.date)');
    assert.deepEqual([asked.changed?.query.parameters, asked.changed?.tables], [['date'], undefined]);
    // Nothing of what a partition holds is decided by it.
    assert.equal(asked.fingerprint, (await withSettings([])).fingerprint);
  });

  it('ready as a query, and with its delay', async () => {
    const short = await withSettings(['ready: SELECT EXISTS (SELECT FROM loads WHERE d = :date)']);
    assert.equal(short.ready?.query.text, 'SELECT EXISTS (SELECT FROM loads WHERE d = ($1::pg_catalog.date))');
    assert.deepEqual(short.ready?.query.parameters, ['date']);
    assert.equal(short.ready?.retryAfterMs, 60_000);
    const long = await withSettings(['ready: { sql: SELECT true, retryAfter: 10m }']);
    assert.deepEqual([long.ready?.query.text, long.ready?.retryAfterMs], ['SELECT true', 600_000]);
  });

  it('a query that may read the table of the target’s name, where it runs in another database', async () => {
    await refused([], /reads its own target t/, 'SELECT d FROM t');
    assert.equal((await withSettings(['source: SHOP_URL'], 'SELECT d FROM t')).query.text, 'SELECT d FROM t');
  });
});

describe('settings: what each refuses', () => {
  const wrong: [string, string[], RegExp][] = [
    ['a URL for a source, not shown', ['source: postgres://u:secret@h/d'], /:4: source is a URL: expected the name of an environment variable/],
    ['a scope without a column', ['scope: {}'], /:4: scope is an object: expected values by column such as \{ tenant: acme \}/],
    ['a scope of a list', ['scope: [tenant]'], /:4: scope is a list of 1: expected values by column/],
    ['NULL in a scope', ['scope: { tenant: null }'], /:4: scope\.tenant is null: expected a text, a number, or true or false/],
    ['a text for a truth value', ['skipUnchanged: "yes"'], /:4: skipUnchanged is "yes": expected true or false/],
    ['create for a text', ['create: daily'], /:4: create is "daily": expected true or false/],
    ['a batch of none', ['batch: 0'], /:4: batch is 0 \(a number\): expected a whole number from 1 to 100/],
    ['a batch that is too long', ['batch: 101'], /:4: batch is 101/],
    ['a former name that is none', ['formerly: Old-Name.sql'], /:4: formerly is "Old-Name\.sql": expected the name that the pipeline had/],
    ['changed that is no text', ['changed: true'], /:4: changed is true: expected `rows`, or a query of one value such as/],
    ['changed that writes', ['changed: DELETE FROM t'], /:4: changed: the query is a DELETE: expected one SELECT/],
    ['changed with an unknown parameter', ['changed: "SELECT :dat"'], /:4: changed: unknown parameter :dat\. Did you mean date\?/],
    ['changed: rows of no table', ['changed: rows'], /:4: changed is rows, and the query reads no table/],
    ['ready without a query', ['ready: { retryAfter: 5m }'], /:4: ready is an object: expected a query of one boolean/],
    ['ready with a delay that is none', ['ready: { sql: SELECT true, retryAfter: 5 }'], /:4: ready is an object: expected a query of one boolean, or \{ sql: …, retryAfter: 5m \}/],
    ['ready that writes', ['ready: DELETE FROM t'], /:4: ready: the query is a DELETE: expected one SELECT/],
    ['ready with an unknown parameter', ['ready: "SELECT :dat IS NULL"'], /:4: ready: unknown parameter :dat\. Did you mean date\?/],
    ['a sum that writes', ['checks:', '  - rows: { min: 1 }', '  - sum: { a: WITH w AS (DELETE FROM s RETURNING 1) SELECT 1 }'], /:6: sum: the query holds a DELETE/],
    ['a sum that is no SQL', ['checks:', '  - sum:', '      a: SELECT sum(', '      b: SELECT 1'], /:6: sum: the query is not SQL/],
    ['two statements in a check', ['checks: [{ sql: SELECT 1; SELECT 2 }]'], /:4: sql: a second statement begins here/],
    ['a change without its limit', ['checks: [{ change: {} }]'], /:4: checks\[0\]\.change\.maxPercent is missing: expected a finite number of 0 or more/],
    ['a change below 0', ['checks: [{ change: { maxPercent: -1 } }]'], /maxPercent is -1/],
    ['no accepted values', ['checks: [{ accepted: { c: [] } }]'], /:4: checks\[0\]\.accepted\.c is an empty list: expected a list of values such as \[EUR, USD\]/],
    ['a range without bounds', ['checks: [{ range: { c: {} } }]'], /min, max or both/],
    ['a severity there is not', ['checks: [{ rows: { min: 1 }, severity: error }]'], /:4: checks\[0\]\.severity is "error": expected one of fail, warn/],
    ['a name beside another check', ['checks: [{ rows: { min: 1 }, name: x }]'], /a name only beside sql/],
    ['a severity alone', ['checks: [{ severity: warn }]'], /one check an entry: rows, change, unique, not_null, accepted, range, sum or sql/],
    ['stage in SQL', ['stage: false'], /:4: unknown setting "stage"\..* stage is TypeScript only/],
    ['rows in SQL', ['rows: { min: 1 }'], /:4: unknown setting "rows"\..* rows is TypeScript only.*checks: \[\{ rows: /],
    ['columns in SQL', ['columns: [d]'], /:4: unknown setting "columns"\..* columns is TypeScript only/],
    ['a setting named as an object’s prototype is', ['__proto__: { a: 1 }'], /:4: unknown setting "__proto__"\..*begin it with #: `-- # __proto__: …`\.$/],
    ['a setting named as a constructor', ['constructor: 1'], /:4: unknown setting "constructor"\..*begin it with #: `-- # constructor: …`\.$/],
    ['a scope that would be passed over', ['scope: { __proto__: acme }'], /:4: scope is an object: expected values by column/],
    ['a scope on the partition column', ['scope: { d: 2024-02-29 }'], /:4: scope names d, the partition column/],
    ['an endless limit', ['checks: [{ change: { maxPercent: .inf } }]'], /:4: .*maxPercent is Infinity \(a number\): expected a finite number of 0 or more\.$/],
    ['a setting by its path', ['partition.zone: Europe/Vienna'], /:4: unknown setting "partition\.zone"\..* write `partition: \{ column: …, by: …, zone: … \}`\.$/],
    ['another by its path', ['retry.attempts: 3'], /:4: unknown setting "retry\.attempts"\..* write `retry: \{ attempts: … \}`\.$/],
    ['a setting with a point', ['max.rows: 5'], /:4: unknown setting "max\.rows"/],
    ['a setting with a hyphen', ['data-quality: [{ rows: { min: 1 } }]'], /:4: unknown setting "data-quality"/],
    ['a misspelt one with a hyphen', ['skip-unchanged: true'], /:4: unknown setting "skip-unchanged"\. Did you mean skipUnchanged\?/],
    ['a setting in another language', ['größe: 3'], /:4: unknown setting "größe"/],
    ['a setting without a value', ['max.rows:'], /:4: unknown setting "max\.rows"/],
    ['a word with a colon, and how a comment is written', ['TODO: the refunds'], /:4: unknown setting "TODO"\..* Where it is a comment, begin it with #: `-- # TODO: …`\.$/],
    ['a merge key', ['<<: { lookback: 1 }'], /:1: the header uses a YAML merge key \(<<\): write the value out/],
    ['a merge key further in', ['retry: { <<: { attempts: 1 } }'], /:1: the header uses a YAML merge key/],
  ]; // prettier-ignore
  for (const [what, lines, message] of wrong) it(what, () => refused(lines, message));

  it('nothing in prose with a colon behind several words, nor in an address', async () => {
    const { lookback } = await withSettings([
      'Note the following: only paid orders count.',
      'https://wiki.example.com/sales says why.',
      'lookback: 2',
    ]);
    assert.equal(lookback, 2);
  });

  const zones: [string, string][] = [
    ['Europe/Viena', 'Europe/Vienna'],
    ['europe vienna', 'Europe/Vienna'],
    ['New_Yrok', 'America/New_York'],
  ];
  for (const [given, meant] of zones) {
    it(`the zone ${given}, with the one that was meant`, async () => {
      const text = `-- repave\n-- target: t\n-- partition: { column: d, by: day, zone: ${given} }\nSELECT 1`;
      await assert.rejects(readSqlPipeline(file, text), ({ message }: Error) => {
        assert.match(message, /:3: partition\.zone is "/);
        assert.ok(message.endsWith(`. Did you mean ${meant}?`), message);
        return true;
      });
    });
  }
});
