import assert from 'node:assert/strict';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, settled, sqlPipeline } from '../support/fill.js';
import { relay, relayPipeline } from '../support/source-database.js';
import { withStatements } from '../support/statements.js';

/** A type of each database's own: their oids differ, and of the enum also the order of its labels. */
const TYPES = (labels: string): string => `
  CREATE TYPE mood AS ENUM (${labels});
  CREATE TYPE pair AS (a int, b text);
  CREATE TYPE span AS RANGE (subtype = float8);
  CREATE DOMAIN percent AS numeric(5,2) CHECK (VALUE <= 100);
  CREATE DOMAIN code AS char(5);
  CREATE DOMAIN label AS mood;`;

/** [type of the query's column, its values as literals, type of the target's column, the format that is used] */
type Case = readonly [from: string, values: readonly string[], to: string, format: 'binary' | 'text'];

const INTS = ['0', '-1', '32767'];
const FLOATS = ["'0.1'", "'0.30000000000000004'", "'-0'", "'1e-310'", "'NaN'", "'-Infinity'", "'9007199254740993'"];
const TEXTS = ["''", "E'a\\tb\\nc\\r\\\\d'", "'\\.'", "'\\N'", "'it''s \"q\"'", "'😀 é'", "'NULL'", "'{}'"];
const TIMES = [
  "'2024-02-29 23:59:59.999999'",
  "'infinity'",
  "'-infinity'",
  "'4713-01-01 00:00:00 BC'",
  "'294276-12-31 23:59:59.999999'",
];

const SAME: readonly Case[] = [
  ['bool', ['true', 'false', 'NULL'], 'bool', 'binary'],
  ['int2', ['-32768', '32767'], 'int2', 'binary'],
  ['int4', ['-2147483648', '2147483647'], 'int4', 'binary'],
  ['int8', ["'-9223372036854775808'", "'9223372036854775807'", '9007199254740993'], 'int8', 'binary'],
  [
    'numeric',
    ["'1e100'", '1.50', '1.0', "'NaN'", "'Infinity'", "'12345678901234567890123456789012345678.0123456789'"],
    'numeric',
    'binary',
  ],
  ['numeric(38,10)', ["'1234567890123456789012345678.0123456789'"], 'numeric(38,10)', 'binary'],
  ['float4', FLOATS.filter((value) => value !== "'1e-310'"), 'float4', 'binary'],
  ['float8', FLOATS, 'float8', 'binary'],
  ['text', TEXTS, 'text', 'binary'],
  ['varchar', TEXTS, 'varchar', 'binary'],
  ['char(4)', ["'ab'", "''", "'abcd'"], 'char(4)', 'binary'],
  ['bytea', ["'\\x'", "'\\x00ff0a5c2e'"], 'bytea', 'binary'],
  ['date', ["'0044-03-15 BC'", "'infinity'", "'-infinity'", "'5874897-12-31'"], 'date', 'binary'],
  ['time', ["'24:00:00'", "'00:00:00.000001'"], 'time', 'binary'],
  ['timetz', ["'12:00:00.5+05:30'"], 'timetz', 'binary'],
  ['timestamp', TIMES, 'timestamp', 'binary'],
  ['timestamptz', TIMES, 'timestamptz', 'binary'],
  ['interval', ["'1 year -2 days 03:04:05.000006'", "'-178000000 years'"], 'interval', 'binary'],
  ['uuid', ["'00112233-4455-6677-8899-aabbccddeeff'"], 'uuid', 'binary'],
  ['json', ['\'{"b":1,  "a": [1.50, null]}\''], 'json', 'binary'],
  ['jsonb', ['\'{"b":1,  "a": [1.50, null], "": "😀"}\'', "'null'"], 'jsonb', 'binary'],
  ['inet', ["'10.0.0.1'", "'10.0.0.1/8'", "'::1'"], 'inet', 'binary'],
  ['cidr', ["'10.0.0.0/8'"], 'cidr', 'binary'],
  ['macaddr', ["'08:00:2b:01:02:03'"], 'macaddr', 'binary'],
  ['bit(3)', ["B'101'"], 'bit(3)', 'binary'],
  ['varbit', ["B'10111'", "B''"], 'varbit', 'binary'],
  ['int4[]', ["'{}'", "'{1,NULL,-3}'", "'[2:3]={7,8}'", "'{{1,2},{3,4}}'"], 'int4[]', 'binary'],
  ['text[]', [`'{"a,b","NULL",NULL,"","x\\\\y"}'`], 'text[]', 'binary'],
  ['int8range', ["'[1,5)'", "'empty'", "'(,)'"], 'int8range', 'binary'],
  ['tstzrange', ["'[2024-01-01,infinity)'"], 'tstzrange', 'binary'],
  ['point', ["'(1.5,-0)'"], 'point', 'binary'],
  ['money', ["'-1234.56'"], 'money', 'binary'],
  ['int4multirange', ["'{[1,3),[5,9)}'"], 'int4multirange', 'text'],
  ['tsvector', ["'a:1 b:2A'"], 'tsvector', 'text'],
  ['xml', ["'<a>é</a>'"], 'xml', 'text'],
  ['mood', ["'sad'", "'it''s \\fine'", 'NULL'], 'mood', 'text'],
  ['mood[]', [`'{sad,NULL}'`], 'mood[]', 'text'],
  ['pair', ["ROW(1, E'a,\"b\\t\\\\')"], 'pair', 'text'],
  ['span', ["'[0.1,0.30000000000000004)'"], 'span', 'text'],
  ['percent', ['99.999', '-1'], 'percent', 'binary'],
  ['code', ["'ab'"], 'code', 'binary'],
  ['label', ["'sad'"], 'label', 'text'],
];

const CAST: readonly Case[] = [
  ['int2', INTS, 'int8', 'binary'],
  ['int8', INTS, 'int2', 'binary'],
  ['int8', ['9007199254740993'], 'float8', 'binary'],
  ['int8', ['16777217'], 'float4', 'binary'],
  ['int4', INTS, 'numeric(12,2)', 'binary'],
  ['numeric', ['1.5', '2.5', '-1.5'], 'int4', 'binary'],
  ['numeric', ['1.005', '-1.005', '1.5'], 'numeric(12,2)', 'binary'],
  ['numeric', ["'0.1'"], 'float4', 'binary'],
  ['float8', ["'0.30000000000000004'", "'NaN'", "'123456.789'"], 'numeric', 'binary'],
  ['float8', ["'2.675'"], 'numeric(12,2)', 'binary'],
  ['float8', ["'1.5'", "'2.5'"], 'int4', 'binary'],
  ['float4', ["'0.1'", "'16777216'"], 'float8', 'binary'],
  ['float8', ["'0.1'"], 'float4', 'binary'],
  ['bool', ['true', 'false'], 'text', 'binary'],
  ['int4', INTS, 'text', 'binary'],
  ['int4', INTS, 'varchar(5)', 'binary'],
  ['inet', ["'10.0.0.1'"], 'text', 'binary'],
  ['jsonb', ['\'{"a": 1.50}\''], 'text', 'binary'],
  ['json', ['\'{"b":1,  "a": 1}\''], 'jsonb', 'binary'],
  ['date', ["'2024-02-29'", "'infinity'", "'0044-03-15 BC'"], 'timestamp', 'binary'],
  ['date', ["'2024-02-29'", "'infinity'"], 'timestamptz', 'binary'],
  ['timestamp', TIMES.slice(0, 3), 'date', 'binary'],
  ['timestamptz', ["'2024-02-29 23:30:00+00'"], 'date', 'binary'],
  ['timestamp', ["'2024-03-31 02:30:00'", "'2024-10-27 02:30:00'"], 'timestamptz', 'binary'],
  ['timestamptz', ["'2024-02-29 23:59:59.9999996+00'"], 'timestamp(0)', 'binary'],
  ['timestamp', ["'2024-02-29 12:00:00.5555'"], 'time(2)', 'binary'],
  ['time', ["'12:34:56.789'"], 'interval', 'binary'],
  ['char(6)', ["'ab'", "'ab c'"], 'text', 'binary'],
  ['char(6)', ["'ab'"], 'varchar(3)', 'binary'],
  ['text', ["'ab'", "'abc   '"], 'char(4)', 'binary'],
  ['text', ["'ab'", "'abc   '"], 'varchar(3)', 'binary'],
  ['text', ["'ab'"], 'name', 'binary'],
  ['varbit', ["B'101'"], 'bit(3)', 'binary'],
  ['cidr', ["'10.0.0.0/8'"], 'inet', 'binary'],
  ['int4[]', ["'{1,NULL}'"], 'int8[]', 'binary'],
  ['numeric[]', ["'{1.5}'"], 'int4[]', 'binary'],
  ['mood', ["'sad'"], 'text', 'binary'],
  ['pair', ["ROW(1, 'x')"], 'text', 'binary'],
  ['percent', ['99.99'], 'int4', 'binary'],
  ['int4', ['7'], 'percent', 'binary'],
];

/** The last value cannot be stored, for whatever reason; the failure is the same. */
const REFUSED: readonly Omit<Case, never>[] = [
  ['text', ["'abcd'"], 'varchar(3)', 'binary'],
  ['text', ["'abcde'"], 'char(4)', 'binary'],
  ['varbit', ["B'1011'"], 'bit(3)', 'binary'],
  ['int8', ['2147483648'], 'int4', 'binary'],
  ['numeric', ['99999999999.5'], 'numeric(12,2)', 'binary'],
  ['float8', ["'NaN'"], 'int4', 'binary'],
  ['numeric', ['101'], 'percent', 'binary'],
  ['int4', ['101'], 'percent', 'binary'],
  ['text', ["'5'"], 'int4', 'binary'],
  ['text', ["'sad'"], 'mood', 'text'],
  ['text[]', ["'{5}'"], 'int4[]', 'binary'],
  ['int4', ['1'], 'bool', 'binary'],
  ['timestamptz', ["'2024-02-29'"], 'int4', 'binary'],
  ['mood', ["'sad'"], 'int4', 'binary'],
  ['int4', ['NULL'], 'int4 NOT NULL', 'binary'],
];

/** Untyped in the query, so that an INSERT reads them as what the column is. */
const LITERAL: readonly (readonly [value: string, to: string, format: 'binary' | 'text'])[] = [
  ['NULL', 'int4', 'binary'],
  ["'5'", 'int4', 'binary'],
  ["'1.005'", 'numeric(12,2)', 'binary'],
  ["'2024-02-29'", 'timestamptz', 'binary'],
  ["'x'", 'text', 'binary'],
  ["'sad'", 'mood', 'text'],
  ["'{1,2}'", 'int4[]', 'binary'],
  ["'t'", 'bool', 'binary'],
];

describe('a value from another PostgreSQL is stored as one from the same:', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let target: Database;
  let source: Database;

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    await remote.sql(`CREATE TYPE shift AS ENUM ('x'); ${TYPES("'it''s \\fine', 'sad'")}`);
    await test.sql(TYPES("'sad', 'it''s \\fine'"));
    [target, source] = await Promise.all([
      openDatabase(test.url, { fills: 4 }),
      openDatabase(remote.url, { fills: 4 }),
    ]);
  });
  after(async () => {
    await Promise.all([target.close(), source.close()]);
    await Promise.all([test.drop(), remote.drop()]);
  });

  const query = (from: string, values: readonly string[]): string =>
    `SELECT :date AS day, v FROM (VALUES ${values.map((value) => `((${value})::${from})`).join(', ')}) t(v)`;

  /** What stands in the target after a fill from the same database and after one from the other, or how that failed. */
  async function stored(text: string, type: string, zone: string): Promise<readonly [unknown, unknown, string]> {
    await test.sql(`DROP TABLE IF EXISTS target; CREATE TABLE target (day date NOT NULL, v ${type})`);
    const partition = { column: 'day', by: 'day' as const, zone };
    const ends: unknown[] = [];
    let format = 'none';
    for (const pipeline of [sqlPipeline(text, { partition }), relayPipeline(text, { partition })]) {
      await test.sql('TRUNCATE target');
      const hooks = {
        before: ({ kind, text: sent }: { kind: string; text: string }) => {
          if (kind === 'copy') format = /FORMAT (\w+)/.exec(sent)?.[1] ?? 'unsaid';
        },
      };
      const end = await settled(
        withStatements(hooks, () =>
          pipeline.source ? relay(target, source, pipeline) : fill(target, fillRequest(pipeline)),
        ),
      );
      const rows = await test.sql<{ v: string | null }>('SELECT v::text FROM target ORDER BY ctid');
      ends.push(end.failure ? end.failure.type : rows.map(({ v }) => v));
    }
    return [ends[0], ends[1], format];
  }

  for (const [group, cases] of Object.entries({ 'of one type': SAME, 'cast as it is assigned': CAST })) {
    for (const [from, values, to, format] of cases) {
      it(`${group}: ${from} into ${to}`, async () => {
        const zone = 'Europe/Berlin';
        const [same, other, used] = await stored(query(from, values), to, zone);
        assert.ok(Array.isArray(same), String(same));
        assert.equal(same.length, values.length);
        assert.deepEqual(other, same);
        assert.equal(used, format);
      });
    }
  }

  for (const [from, values, to] of REFUSED) {
    it(`refused alike: ${from} into ${to}`, async () => {
      const [same, other] = await stored(query(from, values), to, 'UTC');
      assert.equal(typeof same, 'string', JSON.stringify(same));
      assert.equal(other, same);
    });
  }

  for (const [value, to, format] of LITERAL) {
    it(`an untyped literal: ${value} into ${to}`, async () => {
      for (const text of [
        `SELECT :date AS day, ${value} AS v`,
        `SELECT :date AS day, ${value} AS v ORDER BY 1 LIMIT 1 -- one`,
      ]) {
        const [same, other, used] = await stored(text, to, 'UTC');
        assert.ok(Array.isArray(same), String(same));
        assert.deepEqual(other, same);
        assert.equal(used, format);
      }
    });
  }
});
