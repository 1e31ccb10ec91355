/** Types that a warehouse uses, with values at their extremes. */

export interface TypeValues {
  /** As a column is declared. */
  readonly type: string;
  /** SQL expressions, as a person would write them into an INSERT. */
  readonly values: readonly string[];
  /**
   * The same values, as far as JavaScript has them, as a source written in TypeScript would yield them; undefined where there
   * is none. By the place in `values`.
   */
  readonly native?: readonly unknown[];
  /** A type of each database's own, or one that goes from server to server as text. */
  readonly asText?: true;
}

/** What the types below need. */
export const VALUE_TYPES = `
  CREATE TYPE mood AS ENUM ('sad', 'it''s \\fine', 'happy');
  CREATE TYPE pair AS (a int, b text);
  CREATE TYPE span AS RANGE (subtype = float8);
  CREATE DOMAIN percent AS numeric(5,2) CHECK (VALUE <= 100);
  CREATE DOMAIN word AS text CHECK (VALUE <> 'no');`;

const EVERY_BYTE = Array.from({ length: 256 }, (_, byte) => byte);
const LONG = 100_000;

const TEXTS: readonly (readonly [sql: string, native: string])[] = [
  [`''`, ''],
  [`'NULL'`, 'NULL'],
  [String.raw`'\N'`, '\\N'],
  [String.raw`'\.'`, '\\.'],
  [String.raw`E'before\n\\.\nafter'`, 'before\n\\.\nafter'],
  [String.raw`E'tab\tnewline\nreturn\rboth\r\n'`, 'tab\tnewline\nreturn\rboth\r\n'],
  [String.raw`E'\b\f\x0B\x01\x7F'`, '\b\f\v\u0001\u007f'],
  [String.raw`'C:\new\table\\'`, 'C:\\new\\table\\\\'],
  [`'quotes '' " \` and $1, $$, :date; -- /* */'`, 'quotes \' " ` and $1, $$, :date; -- /* */'],
  [`'😀 👩‍👩‍👧 Zürich 東京 e\u0301 \u{10ffff} \ufeff'`, '😀 👩‍👩‍👧 Zürich 東京 e\u0301 \u{10ffff} \ufeff'],
  [`'  blanks  '`, '  blanks  '],
  [`repeat('long ', ${LONG})`, 'long '.repeat(LONG)],
];

export const VALUES: readonly TypeValues[] = [
  { type: 'boolean', values: ['true', 'false'], native: [true, false] },
  { type: 'smallint', values: ['-32768', '32767'], native: [-32768, 32767] },
  { type: 'int', values: ['-2147483648', '2147483647', '0'], native: [-2147483648, 2147483647, -0] },
  {
    type: 'bigint',
    values: [`'-9223372036854775808'`, '9223372036854775807', '9007199254740993', '9007199254740991'],
    native: [-9223372036854775808n, 9223372036854775807n, 9007199254740993n, 9007199254740991],
  },
  { type: 'oid', values: ['4294967295', '0'], native: [4294967295, 0] },
  {
    type: 'numeric(38,10)',
    values: ['9999999999999999999999999999.9999999999', '-0.0000000001', '1', `'NaN'`],
    native: ['9999999999999999999999999999.9999999999', '-0.0000000001', 1, 'NaN'],
  },
  {
    type: 'numeric',
    values: [
      `'NaN'`,
      `'Infinity'`,
      `'-Infinity'`,
      '1.00',
      '1.0',
      `'1e131071'`,
      `'1e-16383'`,
      '123456789012345678901234567890',
    ],
    native: ['NaN', 'Infinity', '-Infinity', '1.00', '1.0', undefined, undefined, 123456789012345678901234567890n],
  },
  {
    type: 'real',
    values: [`'NaN'`, `'Infinity'`, `'-Infinity'`, `'-0'`, `'1e-45'`, `'3.4028235e38'`, '0.1', '16777216'],
    native: [NaN, Infinity, -Infinity, -0, undefined, undefined, 0.1, 16777216],
  },
  {
    type: 'float8',
    values: [
      `'NaN'`,
      `'Infinity'`,
      `'-Infinity'`,
      `'-0'`,
      `'5e-324'`,
      `'1.7976931348623157e308'`,
      '0.1',
      '0.30000000000000004',
    ],
    native: [NaN, Infinity, -Infinity, -0, 5e-324, 1.7976931348623157e308, 0.1, 0.30000000000000004],
  },
  { type: 'money', values: [`'-92233720368547758.08'`, `'92233720368547758.07'`, '0'] },
  { type: 'text', values: TEXTS.map(([sql]) => sql), native: TEXTS.map(([, native]) => native) },
  { type: 'varchar(40)', values: [`''`, `'  ab  '`, String.raw`'\.'`], native: ['', '  ab  ', '\\.'] },
  { type: 'char(5)', values: [`''`, `'ab'`, `'  ab'`], native: ['', 'ab', '  ab'] },
  { type: '"char"', values: [`'x'`, `''`], native: ['x', ''] },
  { type: 'name', values: [`repeat('n', 63)`] },
  {
    type: 'bytea',
    values: [
      `'\\x'`,
      `'\\x00'`,
      String.raw`'\x5c2e0a0d09'`,
      `decode('${Buffer.from(EVERY_BYTE).toString('hex')}', 'hex')`,
    ],
    native: [new Uint8Array(), new Uint8Array([0]), Buffer.from('\\.\n\r\t'), Uint8Array.from(EVERY_BYTE)],
  },
  { type: 'uuid', values: [`'00000000-0000-0000-0000-000000000000'`, `'ffffffff-ffff-ffff-ffff-ffffffffffff'`] },
  {
    type: 'date',
    values: [
      `'4713-01-01 BC'`,
      `'0001-12-31 BC'`,
      `'0001-01-01'`,
      `'5874897-12-31'`,
      `'infinity'`,
      `'-infinity'`,
      `'2024-02-29'`,
    ],
  },
  { type: 'time', values: [`'24:00:00'`, `'00:00:00.000001'`, `'23:59:59.999999'`] },
  { type: 'timetz', values: [`'23:59:59.999999-15:59'`, `'00:00:00+15:59'`] },
  {
    type: 'timestamp',
    values: [
      `'4713-01-01 00:00:00 BC'`,
      `'294276-12-31 23:59:59.999999'`,
      `'infinity'`,
      `'-infinity'`,
      `'2024-02-29 23:59:59.999999'`,
      `'1969-12-31 23:59:59.999999'`,
    ],
  },
  {
    type: 'timestamptz',
    values: [
      `'4713-01-01 00:00:00+00 BC'`,
      `'294276-12-31 23:59:59.999999+00'`,
      `'infinity'`,
      `'-infinity'`,
      `'2024-03-10 02:30:00.123456-05'`,
      `'0044-03-15 00:00:00+00 BC'`,
      `'2024-11-03 05:30:00.123+00'`,
      `'12024-01-01 00:00:00+00'`,
    ],
    native: [
      undefined,
      undefined,
      'infinity',
      '-infinity',
      '2024-03-10T07:30:00.123456Z',
      new Date('-000043-03-15T00:00:00Z'),
      new Date('2024-11-03T05:30:00.123Z'),
      new Date('+012024-01-01T00:00:00Z'),
    ],
  },
  {
    type: 'interval',
    values: [`'178000000 years'`, `'-178000000 years'`, `'-1 mon +1 day -00:00:00.000001'`, `'0'`, `'1 day 25:00:00'`],
  },
  {
    type: 'json',
    values: [
      String.raw`'{"b" :  1.00, "a": 1, "a": 2, "tab": "\t"}'`,
      `'null'`,
      String.raw`'"\u0000"'`,
      `'[1,"x",null]'`,
    ],
    native: [undefined, undefined, undefined, [1, 'x', null]],
  },
  {
    type: 'jsonb',
    values: [
      `'{"b": 1.00, "a": [null, {"": "😀"}]}'`,
      `'null'`,
      `'123456789012345678901234567890.10'`,
      String.raw`'{"a":[1,"x",null,true,{"b":"tab\t\n\\ \""}]}'`,
      `'[]'`,
      `'"text"'`,
    ],
    native: [
      undefined,
      'null',
      '123456789012345678901234567890.10',
      { a: [1, 'x', null, true, { b: 'tab\t\n\\ "' }] },
      [],
      '"text"',
    ],
  },
  {
    type: 'int[]',
    values: [`'{}'`, `'{1,NULL,-2147483648}'`, `'{{1,2},{3,4}}'`, `'[0:1]={1,2}'`],
    native: [
      [],
      [1, null, -2147483648],
      [
        [1, 2],
        [3, 4],
      ],
      undefined,
    ],
  },
  {
    type: 'text[]',
    values: [
      String.raw`ARRAY['', NULL, 'NULL', 'a,b', '{c}', '"', '\', '\.', ' d ', E'e\nf\tg', '😀']`,
      `ARRAY[]::text[]`,
    ],
    native: [['', null, 'NULL', 'a,b', '{c}', '"', '\\', '\\.', ' d ', 'e\nf\tg', '😀'], []],
  },
  { type: 'bigint[]', values: [`'{9223372036854775807,NULL}'`], native: [[9223372036854775807n, undefined]] },
  { type: 'numeric(38,10)[]', values: [`'{9999999999999999999999999999.9999999999,NaN}'`] },
  { type: 'date[]', values: [`'{"4713-01-01 BC",infinity,NULL}'`] },
  {
    type: 'timestamptz[]',
    values: [`'{"2024-02-29 23:59:59.999+00",-infinity}'`],
    native: [[new Date('2024-02-29T23:59:59.999Z'), '-infinity']],
  },
  {
    type: 'bytea[]',
    values: [String.raw`ARRAY['\x5c2e'::bytea, '\x']`],
    native: [[Buffer.from('\\.'), new Uint8Array()]],
  },
  {
    type: 'jsonb[]',
    values: [String.raw`ARRAY['{"a": "x\"y"}'::jsonb, '[1]', NULL]`],
    native: [[{ a: 'x"y' }, [1], null]],
  },
  { type: 'int4range', values: [`'empty'`, `'[-5,5)'`, `'(,)'`, `'[1,]'`] },
  { type: 'numrange', values: [`'[1.00,2.0]'`, `'(,0)'`] },
  { type: 'daterange', values: [`'[-infinity,infinity)'`, `'[2024-02-29,2024-03-01)'`] },
  { type: 'tsrange', values: [`'[2024-02-29 23:59:59.999999,)'`] },
  { type: 'tstzrange', values: [`'["2024-02-29 23:59:59.999999+00",infinity)'`] },
  { type: 'inet', values: [`'::1/128'`, `'192.168.0.1/24'`, `'2001:db8::ffff'`] },
  { type: 'cidr', values: [`'10.0.0.0/8'`, `'::/0'`] },
  { type: 'macaddr', values: [`'08:00:2b:01:02:03'`] },
  { type: 'macaddr8', values: [`'08:00:2b:01:02:03:04:05'`] },
  { type: 'bit(3)', values: [`B'101'`] },
  { type: 'varbit', values: [`B''`, `B'1011101'`] },
  { type: 'point', values: [`'(1.5,-0)'`, `'(Infinity,NaN)'`] },
  { type: 'box', values: [`'(2,2),(1,1)'`] },
  { type: 'path', values: [`'[(0,0),(1,0.1)]'`, `'((0,0),(1,1))'`] },
  { type: 'polygon', values: [`'((0,0),(1,1),(1,0))'`] },
  { type: 'circle', values: [`'<(0.1,0.2),3>'`] },
  { type: 'percent', values: ['99.99', '-1'], native: ['99.99', -1] },
  { type: 'word', values: [`''`, String.raw`'\.'`], native: ['', '\\.'] },
  { type: 'mood', values: [`'sad'`, String.raw`'it''s \fine'`], native: ['sad', "it's \\fine"], asText: true },
  { type: 'mood[]', values: [`'{sad,NULL}'`, `'{}'`], native: [['sad', null], []], asText: true },
  { type: 'pair', values: [String.raw`ROW(1, E'a,"b\t\\')::pair`, `ROW(NULL, '')::pair`], asText: true },
  { type: 'span', values: [`'[0.1,0.30000000000000004)'`], asText: true },
  { type: 'int4multirange', values: [`'{}'`, `'{[1,3),[5,9)}'`], asText: true },
  { type: 'tsvector', values: [`'a:1A fat:2,4B'`, `''`], asText: true },
  { type: 'tsquery', values: [`'fat & !rat:*'`], asText: true },
];

/** Rows that hold every value once: as many as the type with the most has, the others’ last cells NULL. One more is all NULL. */
export const VALUE_ROWS = Math.max(...VALUES.map(({ values }) => values.length)) + 1;
