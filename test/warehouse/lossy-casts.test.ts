import assert from 'node:assert/strict';
import { loss } from '../../src/warehouse/lossy-casts.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

describe('casts that lose something', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase({ ledger: false });
  });
  after(() => test.drop());

  async function typeOf(type: string): Promise<{ name: string; text: string }> {
    await test.sql(`CREATE TABLE typed (c ${type})`);
    const [found] = await test.sql<{ name: string; text: string }>(
      `SELECT t.typname AS name, format_type(a.atttypid, a.atttypmod) AS text
         FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'typed'::regclass AND attname = 'c'`,
    );
    await test.sql('DROP TABLE typed');
    return found ?? { name: '', text: '' };
  }

  /** Each a type, a value of it, the type of the column it is written into, and what is said. */
  const lossy: [string, string, string, RegExp][] = [
    ['numeric', '1.5', 'int', /whole numbers/],
    ['numeric(12,4)', '1.2345', 'numeric(12,2)', /2 decimal places/],
    ['numeric(12,4)', '1.2345', 'numeric(12,1)', /1 decimal place$/],
    ['numeric(12,4)', '1.2345', 'numeric(12)', /whole numbers/],
    ['float8', '1.5', 'bigint', /whole numbers/],
    ['float4', '1.5', 'smallint', /whole numbers/],
    ['float8', '0.1234567890123', 'float4', /6 significant/],
    ['float8', '0.12345678901234567', 'numeric', /15 significant/],
    ['float8', '1.25', 'numeric(5,1)', /15 significant digits, and rounds to 1 decimal place/],
    ['numeric', '0.12345678901234567890', 'float8', /15 significant/],
    ['bigint', '9007199254740993', 'float8', /2\^53/],
    ['int', '16777217', 'float4', /2\^24/],
    ['timestamp', '2024-02-29 13:00', 'date', /time of day/],
    ['timestamptz', '2024-02-29 13:00+00', 'date', /time of day/],
    ['timestamptz', '2024-02-29 13:00+05', 'timestamp', /time zone/],
    ['timestamp', '2024-02-29 13:00:00.123456', 'timestamp(3)', /3 digits/],
    ['timestamptz(3)', '2024-02-29 13:00:00.123', 'timestamptz(0)', /whole seconds/],
    ['time', '13:00:00.5', 'time(0)', /whole seconds/],
    ['timestamp', '2024-02-29 13:00', 'time', /drops the date/],
    ['interval', '2 days 01:00', 'time', /whole days/],
    ['varchar(9)', 'ab   ', 'varchar(3)', /3 characters/],
    ['json', '{"b":1,"a":2,"a":3}', 'jsonb', /order of keys/],
    ['inet', '10.1.2.3/8', 'cidr', /netmask/],
    ['numeric[]', '{1.5}', 'int[]', /whole numbers/],
    ['timestamp[]', '{2024-02-29 13:00}', 'date[]', /time of day/],
  ]; // prettier-ignore
  for (const [from, value, to, said] of lossy) {
    it(`${from} into ${to}`, async () => {
      assert.match(loss(await typeOf(from), await typeOf(to)) ?? 'nothing', said);
      await test.sql(`CREATE TABLE put (c ${to}); INSERT INTO put SELECT $$${value}$$::${from}`);
      const [row] = await test.sql<{ was: string; became: string }>(
        `SELECT ($$${value}$$::${from})::text AS was, c::text AS became FROM put`,
      );
      await test.sql('DROP TABLE put');
      assert.ok(row && row.was !== row.became, JSON.stringify(row));
    });
  }

  const kept: [string, string][] = [
    ['int', 'bigint'],
    ['bigint', 'int'],
    ['int', 'numeric(12,2)'],
    ['numeric(12,2)', 'numeric(14,4)'],
    ['numeric', 'numeric(12,2)'],
    ['numeric(12,2)', 'numeric'],
    ['float4', 'float8'],
    ['int', 'float8'],
    ['date', 'timestamp'],
    ['date', 'timestamptz'],
    ['timestamp', 'timestamptz'],
    ['timestamp(3)', 'timestamp'],
    ['timestamp', 'timestamp(6)'],
    ['varchar(3)', 'varchar(9)'],
    ['text', 'varchar(9)'],
    ['varchar(9)', 'text'],
    ['jsonb', 'json'],
    ['cidr', 'inet'],
    ['int[]', 'bigint[]'],
    ['uuid', 'text'],
  ];
  it('are told from those that lose nothing, or fail', async () => {
    for (const [from, to] of kept)
      assert.equal(loss(await typeOf(from), await typeOf(to)), undefined, `${from} into ${to}`);
  });
});
