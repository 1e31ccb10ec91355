import assert from 'node:assert/strict';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { readChecksum } from '../../src/warehouse/checksum.js';
import { fill } from '../../src/warehouse/fill.js';
import type { Row } from '../../src/pipeline/pipeline.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { fillRequest, KEY, sqlPipeline, typescriptPipeline } from '../support/fill.js';
import { relay, relayPipeline } from '../support/source-database.js';

const QUERY = 'SELECT day, a, b, at FROM source WHERE day >= :date AND day < :end_date';

describe('checksum', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 4 });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TABLE source (day date NOT NULL, a numeric, b text, at timestamptz);
      CREATE TABLE target (id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz, day date NOT NULL, b text, a numeric);
      INSERT INTO source VALUES ('${KEY}', 1.50, 'x', '2024-02-29 12:00+00'), ('${KEY}', NULL, 'y, "z"', NULL), ('${KEY}', NULL, 'y, "z"', NULL)`);
  });

  /** Of the newest fill. */
  async function kept(): Promise<string | null> {
    const [row] = await test.sql<{ checksum: string | null }>(
      'SELECT checksum FROM repave.fill ORDER BY id DESC LIMIT 1',
    );
    assert.ok(row);
    return row.checksum;
  }
  const bySql = (query = QUERY, settings = {}) =>
    fill(database, fillRequest(sqlPipeline(query, { checksum: true, ...settings })));
  const rows = async function* (): AsyncGenerator<Row> {
    for (const row of await test.sql('SELECT b, a::text, at::text, day::text FROM source ORDER BY b DESC')) yield row;
  };

  it('is kept with the fill only where the pipeline says so, with the columns it was taken of', async () => {
    await fill(database, fillRequest(sqlPipeline(QUERY)));
    assert.equal(await kept(), null);
    await bySql();
    const checksum = (await kept()) ?? '';
    assert.match(checksum, /^c1:3 -?\d+ -?\d+ \[\["a","numeric"\],\["at",/);
    assert.deepEqual(readChecksum(checksum)?.columns, [
      ['a', 'numeric'],
      ['at', 'timestamp with time zone'],
      ['b', 'text'],
      ['day', 'date'],
    ]);
    assert.equal(readChecksum(`c2:${checksum.slice(3)}`), undefined);
  });

  it('is the same of the same rows: again, unchanged, in any order of rows and columns, from a source, from TypeScript', async () => {
    await bySql();
    const first = await kept();
    await bySql();
    assert.equal(await kept(), first, 'a refill');
    const { unchanged } = await bySql(QUERY, { skipUnchanged: true });
    assert.ok(unchanged);
    assert.equal(await kept(), first, 'a fill that wrote nothing');
    await bySql('SELECT at, b, day, a FROM source WHERE day >= :date AND day < :end_date ORDER BY b DESC');
    assert.equal(await kept(), first, 'another order');
    await relay(database, database, { ...relayPipeline(QUERY), checksum: true });
    assert.equal(await kept(), first, 'another PostgreSQL');
    await fill(database, fillRequest(typescriptPipeline(rows, { checksum: true })));
    assert.equal(await kept(), first, 'TypeScript');
    await fill(database, fillRequest(typescriptPipeline(rows, { checksum: true, stage: false })));
    assert.equal(await kept(), first, 'TypeScript without a stage');
    await test.sql('ALTER TABLE target ADD COLUMN c int DEFAULT 7');
    await bySql();
    assert.equal(await kept(), first, 'a column more');
  });

  it('is another where a value, a row or a repetition is another', async () => {
    await bySql();
    const seen = new Set([await kept()]);
    for (const change of [
      'UPDATE source SET a = 1.5 WHERE a = 1.50',
      "UPDATE source SET at = at + interval '1 microsecond'",
      "UPDATE source SET b = 'x' WHERE ctid = (SELECT max(ctid) FROM source WHERE a IS NULL)",
      'DELETE FROM source WHERE ctid = (SELECT max(ctid) FROM source)',
      'DELETE FROM source',
    ]) {
      await test.sql(change);
      await bySql();
      seen.add(await kept());
    }
    assert.equal(seen.size, 6);
  });

  it('is of what stands: what a trigger made of a row', async () => {
    await test.sql(`CREATE FUNCTION louder() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.b := upper(new.b); RETURN new; END';
      CREATE TRIGGER louder BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION louder()`);
    await bySql();
    const loud = await kept();
    await test.sql('DROP TRIGGER louder ON target');
    await bySql();
    assert.notEqual(await kept(), loud);
    await test.sql('UPDATE source SET b = upper(b)');
    await bySql();
    assert.equal(await kept(), loud);
  });

  it('is there of an empty window, with a source that gave no row too', async () => {
    await test.sql('DELETE FROM source');
    await bySql();
    assert.match((await kept()) ?? '', /^c1:0 0 0 \[/);
    await fill(database, fillRequest(typescriptPipeline(rows, { checksum: true })));
    assert.match((await kept()) ?? '', /^c1:0 0 0 \[/);
  });
});
