import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, typescriptPipeline, withWorker } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';

/** A column's type, a value that a source yields, and SQL that says the same (NULL where `IS NULL` is meant). */
const EXACT: readonly (readonly [type: string, value: unknown, sql: string | null])[] = [
  ['text', 'plain', `'plain'`],
  ['text', '', `''`],
  ['text', null, null],
  ['text', undefined, null],
  ['text', '\\N', String.raw`'\N'`],
  ['text', '\\.', String.raw`'\.'`],
  ['text', '\\.\n\\.', String.raw`E'\\.\n\\.'`],
  ['text', 'tab\tnewline\nreturn\rreturn and newline\r\n', String.raw`E'tab\tnewline\nreturn\rreturn and newline\r\n'`],
  ['text', 'C:\\new\\table\\\\', String.raw`'C:\new\table\\'`],
  ['text', '\b\f\v\u0001\u007f', String.raw`E'\b\f\x0B\x01\x7F'`],
  ['text', `quotes ' " and $1 and :date; --`, `'quotes '' " and $1 and :date; --'`],
  ['text', '😀 Zürich 東京 e\u0301', `'😀 Zürich 東京 e\u0301'`],
  ['text', 'NULL', `'NULL'`],
  ['text', 5, `'5'`],
  ['text', 12345678901234567890n, `'12345678901234567890'`],
  ['text', true, `'t'`],
  ['varchar(3)', 'abc', `'abc'`],
  ['smallint', -32768, '-32768'],
  ['int', -0, '0'],
  ['int', '42', '42'],
  ['bigint', 9223372036854775807n, '9223372036854775807'],
  ['bigint', Number.MAX_SAFE_INTEGER, '9007199254740991'],
  ['numeric', 3, '3'],
  ['numeric', '0.1', '0.1'],
  [
    'numeric',
    '12345678901234567890.123456789012345678901234567890',
    '12345678901234567890.123456789012345678901234567890',
  ],
  ['numeric', 123456789012345678901234567890n, '123456789012345678901234567890'],
  ['numeric', 'NaN', `'NaN'`],
  ['float8', 0.1, '0.1::float8'],
  ['float8', 5e-324, `'5e-324'::float8`],
  ['float8', 1.7976931348623157e308, `'1.7976931348623157e308'::float8`],
  ['float8', Infinity, `'Infinity'`],
  ['float8', -Infinity, `'-Infinity'`],
  ['float8', NaN, `'NaN'`],
  ['float8', -0, `'-0'::float8`],
  ['float4', 1.5, '1.5'],
  ['boolean', true, 'true'],
  ['boolean', false, 'false'],
  ['timestamptz', new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 123)), `'2024-02-29 12:30:15.123Z'`],
  ['timestamptz', new Date('-000043-03-15T00:00:00Z'), `'0044-03-15 00:00:00Z BC'`],
  ['timestamptz', new Date('+012024-01-01T00:00:00Z'), `'12024-01-01 00:00:00Z'`],
  ['timestamptz', '2024-02-29T12:30:15.123456+05:30', `'2024-02-29 07:00:15.123456Z'`],
  ['date', '2024-02-29', `'2024-02-29'`],
  ['timestamp', '2024-02-29T23:59:59.999999', `'2024-02-29 23:59:59.999999'`],
  ['time', '12:30', `'12:30'`],
  ['interval', '1 day 02:00', `'1 day 2 hours'`],
  ['bytea', Buffer.from([0, 1, 92, 255]), String.raw`'\x00015cff'`],
  ['bytea', new Uint8Array(), String.raw`'\x'`],
  ['bytea', '\\xdead', String.raw`'\xdead'`],
  ['uuid', '0191d1a0-0000-7000-8000-000000000000', `'0191d1a0-0000-7000-8000-000000000000'`],
  ['inet', '10.0.0.0/8', `'10.0.0.0/8'`],
  [
    'jsonb',
    { a: [1, 'x', null, true, { b: 'tab\t\n\\ "' }] },
    String.raw`'{"a":[1,"x",null,true,{"b":"tab\t\n\\ \""}]}'`,
  ],
  ['jsonb', [1, 2], `'[1,2]'`],
  ['jsonb', 1.5, `'1.5'`],
  ['jsonb', true, `'true'`],
  ['jsonb', '"a string in PostgreSQL’s own form"', `'"a string in PostgreSQL’s own form"'`],
  ['jsonb', null, null],
  ['jsonb', new Date(0), `'"1970-01-01T00:00:00.000Z"'`],
  ['int[]', [1, null, 3], `'{1,NULL,3}'`],
  ['int[]', [], `'{}'`],
  [
    'int[]',
    [
      [1, 2],
      [3, 4],
    ],
    `'{{1,2},{3,4}}'`,
  ],
  ['bigint[]', [9223372036854775807n], `'{9223372036854775807}'`],
  [
    'text[]',
    ['a,b', '{c}', '"', '\\', 'NULL', '', null, ' d ', 'e\nf\tg'],
    String.raw`ARRAY['a,b', '{c}', '"', '\', 'NULL', '', NULL, ' d ', E'e\nf\tg']`,
  ],
  ['boolean[]', [true, false], `'{t,f}'`],
  ['bytea[]', [Buffer.from([0xde, 0xad])], String.raw`ARRAY['\xdead'::bytea]`],
  ['timestamptz[]', [new Date(0)], `ARRAY['epoch'::timestamptz]`],
  ['jsonb[]', [{ a: 'x"y' }, [1]], String.raw`ARRAY['{"a":"x\"y"}'::jsonb, '[1]'::jsonb]`],
  ['jsonb', { a: undefined, b: [undefined, null] }, `'{"b":[null,null]}'`],
  ['jsonb', { at: new Date(0), own: { toJSON: () => 'said' } }, `'{"at":"1970-01-01T00:00:00.000Z","own":"said"}'`],
  ['jsonb', { deep: [[{ n: 9007199254740991 }]] }, `'{"deep":[[{"n":9007199254740991}]]}'`],
  ['jsonb', { text: 'no escape: \\\\u0000 and 😀' }, String.raw`'{"text":"no escape: \\\\u0000 and 😀"}'`],
  ['mood', 'open', `'open'`],
  ['mood[]', ['open', null, 'closed'], `'{open,NULL,closed}'`],
  ['odd_mood[]', ['open'], `'{open}'`],
  ['money_amount[]', [1, '2.50'], `'{1,2.50}'`],
  ['ratio[]', [0.1, NaN], `'{0.1,NaN}'`],
  ['document[]', [{ a: 1 }, [2]], String.raw`ARRAY['{"a":1}'::jsonb, '[2]'::jsonb]`],
  ['ints', [1, 2], `'{1,2}'`],
  ['bytea[]', [[Buffer.from([1])], [Buffer.from([2])]], String.raw`ARRAY[['\x01'::bytea], ['\x02'::bytea]]`],
  ['int[]', [[], []], `'{}'`],
  // eslint-disable-next-line no-sparse-arrays
  ['int[]', [1, , 3], `'{1,NULL,3}'`],
  ['int[]', '{4,5}', `'{4,5}'`],
  ['daterange', '[2024-02-01,2024-03-01)', `'[2024-02-01,2024-03-01)'`],
  ['int4range[]', ['[1,2)', 'empty'], `ARRAY['[1,2)'::int4range, 'empty'::int4range]`],
  ['text', 'ä'.repeat(40) + '\\' + '€'.repeat(40), String.raw`repeat('ä', 40) || '\' || repeat('€', 40)`],
  ['money_amount', '12.50', '12.50'],
];

const SELF: Record<string, unknown> = {};
SELF.self = SELF;

const REFUSED: readonly (readonly [type: string, value: unknown, problem: RegExp])[] = [
  ['text', 'nul \0 inside', /U\+0000/],
  ['text[]', ['nul \0 inside'], /U\+0000/],
  ['text', '\ud83d alone', /surrogate/],
  ['text[]', ['\ude00'], /surrogate/],
  ['int', 1.5, /whole number/],
  ['bigint', 2 ** 53, /whole number/],
  ['bigint', NaN, /whole number/],
  ['numeric', 0.1, /not exact/],
  ['money_amount', 0.1, /not exact/],
  ['numeric[]', [0.1], /not exact/],
  ['date', new Date(0), /instant/],
  ['timestamp', new Date(0), /instant/],
  ['timestamptz', new Date(NaN), /invalid/],
  ['text', { a: 1 }, /object/],
  ['text', [1], /array/],
  ['text', Buffer.from('x'), /bytea/],
  ['text', () => 1, /function/],
  ['text', Symbol('x'), /symbol/],
  ['int[]', [{}], /object/],
  ['jsonb', () => 1, /no JSON form/],
  ['jsonb', 1n, /no JSON form/],
  ['jsonb', { deep: [{ n: 1n }] }, /bigint has no JSON form/],
  ['jsonb', { deep: [NaN] }, /NaN/],
  ['json', Infinity, /Infinity/],
  ['jsonb', { at: new Date(NaN) }, /Date is invalid/],
  ['jsonb', [Symbol('x')], /symbol/],
  ['jsonb', { f: () => 1 }, /function/],
  ['jsonb', { m: new Map([['a', 1]]) }, /Map/],
  ['jsonb', Buffer.from('x'), /bytes/],
  ['jsonb', { b: new Uint8Array(1) }, /bytes/],
  ['jsonb', SELF, /refers to itself/],
  ['json', { a: 'nul \0 inside' }, /U\+0000/],
  ['jsonb', { 'nul \0': 1 }, /U\+0000/],
  ['jsonb[]', [{ a: ['\0'] }], /U\+0000/],
  ['jsonb', ['\ud83d'], /surrogate/],
  ['ratio[]', [{}], /object/],
  ['int[]', [[1.5]], /whole number/],
  ['odd_mood', ['open'], /array/],
];

describe('the values of a TypeScript source', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    await test.sql(`CREATE TYPE mood AS ENUM ('open', 'closed'); CREATE DOMAIN money_amount AS numeric(12, 2);
      CREATE DOMAIN ratio AS float8; CREATE DOMAIN document AS jsonb; CREATE DOMAIN ints AS int[];
      -- Its arrays have a name with one more _.
      CREATE TYPE _odd_mood AS ENUM ('shut'); CREATE TYPE odd_mood AS ENUM ('open')`);
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(() => test.sql('DROP TABLE IF EXISTS target'));

  it('arrive as they were, each by its column’s type', async () => {
    const columns = EXACT.map(([type], i) => `v${i} ${type}`);
    await test.sql(`CREATE TABLE target (day date NOT NULL, ${columns.join(', ')})`);
    const row = Object.fromEntries(EXACT.map(([, value], i) => [`v${i}`, value]));
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(({ key }) => [
        { day: key, ...row },
        { ...row, day: key },
      ]);
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 2);
    });
    const same = EXACT.map(([type, , sql], i) =>
      // By its text as well where equality is blind: 1.0 = 1.00, -0 = 0.
      sql === null ? `v${i} IS NULL` : `(v${i} = (${sql})::${type} AND v${i}::text = (${sql})::${type}::text)`,
    );
    const rows = await test.sql<Record<string, boolean>>(
      `SELECT ${same.map((condition, i) => `${condition} AS c${i}`).join(', ')} FROM target`,
    );
    assert.equal(rows.length, 2);
    for (const found of rows) {
      const wrong = EXACT.filter((_, i) => found[`c${i}`] !== true).map(([type, value]) => [type, value]);
      assert.deepEqual(wrong, []);
    }
  });

  for (const [type, value, problem] of REFUSED) {
    it(`${inspect(value)} into ${type} is DataError that names the column and the row`, async () => {
      await test.sql(`CREATE TABLE target (day date NOT NULL, "the value" ${type})`);
      await withWorker(test, async (database) => {
        const pipeline = typescriptPipeline(({ key }) => [
          { day: key, 'the value': null },
          { day: key, 'the value': null },
          { day: key, 'the value': value },
        ]);
        const failure = await failsAs(fill(database, fillRequest(pipeline)), 'DataError');
        assert.match(failure.message, /^Row 3, column "the value" \(/);
        assert.match(failure.message, problem);
      });
    });
  }

  it('that only the server can refuse are DataError that names the row', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, n int)');
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(({ key }) => [1, 2, 'three', 4].map((n) => ({ day: key, n })));
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'DataError');
      assert.match(failure.message, /22P02 in row 3, column "n"\./);
    });
  });

  it('of any text come back the same', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, n int, note text, list text[], doc jsonb)');
    const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
    const texts = randomTexts(seed, 2_000);
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(({ key }) =>
        texts.map((note, n) => ({ day: key, n, note, list: [note, [note][0]], doc: { note } })),
      );
      assert.equal((await fill(database, fillRequest(pipeline))).rows, texts.length);
    });
    const rows = await test.sql<{ n: number; note: string; same: boolean }>(
      `SELECT n, note, list = ARRAY[note, note] AND doc->>'note' = note AS same FROM target ORDER BY n`,
    );
    for (const { n, note, same } of rows) {
      assert.equal(note, texts[n], `SEED=${seed}, text ${n}`);
      assert.ok(same, `SEED=${seed}, text ${n}`);
    }
  });

  it('are read by no other rules of the role’s own', async () => {
    await asSuperuser(test, `ALTER ROLE ${test.workerRole} IN DATABASE ${test.name} SET DateStyle = 'SQL, DMY'`);
    await test.sql('CREATE TABLE target (day date NOT NULL, at timestamptz)');
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(({ key }) => [{ day: key, at: new Date('2024-02-03T04:05:06Z') }], {
        partition: { column: 'day', by: 'day', zone: 'America/New_York' },
      });
      await fill(database, fillRequest(pipeline));
    });
    assert.deepEqual(await test.sql(`SELECT day::text, at = '2024-02-03T04:05:06Z' AS same FROM target`), [
      { day: KEY, same: true },
    ]);
  });
});

/** Texts of characters that COPY, arrays and JSON have to escape, and of some that they have not. */
function randomTexts(seed: number, count: number): string[] {
  const characters = [
    '\\',
    '\t',
    '\n',
    '\r',
    'N',
    '.',
    '"',
    "'",
    '{',
    '}',
    ',',
    ' ',
    '\b',
    '\f',
    '\v',
    '\u0001',
    '\u001f',
    'é',
    '😀',
    '\ufeff',
    '\u2028',
    '0',
    'x',
  ];
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  return Array.from({ length: count }, () =>
    Array.from({ length: random(12) }, () => characters[random(characters.length)] ?? '').join(''),
  );
}
