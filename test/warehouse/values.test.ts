import assert from 'node:assert/strict';
import type { Row, RowValues } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, KEY, sqlPipeline, typescriptPipeline } from '../support/fill.js';
import { relayPipeline } from '../support/source-database.js';
import { withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';
import { type TypeValues, VALUE_ROWS, VALUE_TYPES, VALUES } from '../support/values.js';

const SETTINGS = { partition: { column: 'day', by: 'day', zone: 'America/New_York' } } as const;

const columnsOf = (types: readonly TypeValues[]): string[] => types.map((_, i) => `v${i}`);
const everyColumn = (types: readonly TypeValues[]): string[] => ['day', 'n', ...columnsOf(types)];

/** Makes a table of the types. */
const table = (name: string, types: readonly TypeValues[]): string =>
  `CREATE TABLE ${name} (day date NOT NULL, n int, ${types.map(({ type }, i) => `v${i} ${type}`).join(', ')})`;

/** Fills it as a person would. */
const insert = (name: string, types: readonly TypeValues[]): string =>
  `INSERT INTO ${name} VALUES ${Array.from(
    { length: VALUE_ROWS },
    (_, n) => `('${KEY}', ${n}, ${types.map(({ values }) => values[n] ?? 'NULL').join(', ')})`,
  ).join(', ')}`;

describe('values of every type, at their extremes', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let database: Database;
  let source: Database;

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    [database, source] = await Promise.all([
      openDatabase(test.url, { fills: 2 }),
      openDatabase(remote.url, { fills: 2 }),
    ]);
    // So that types of the two databases' own have other oids.
    await remote.sql('CREATE TYPE earlier AS (x int)');
    for (const each of [test, remote]) {
      await each.sql(`${VALUE_TYPES}; ${table('source', VALUES)}; ${insert('source', VALUES)}`);
    }
  });
  after(async () => {
    await Promise.all([database.close(), source.close()]);
    await Promise.all([test.drop(), remote.drop()]);
  });

  /** What PostgreSQL itself says of the values, by its text and by its binary form, which tells -0 and 1.0 from 0 and 1.00. */
  const held = async (name: string, types: readonly TypeValues[]) =>
    withClient(test.superuserUrl, async (client) => {
      await client.query(`SET TimeZone = 'UTC'; SET extra_float_digits = 1`);
      const { rows } = await client.query<{ n: number; texts: (string | null)[]; bytes: string }>(
        `SELECT n, ARRAY[${columnsOf(types)
          .map((column) => `encode(convert_to(${column}::text, 'UTF8'), 'hex')`)
          .join(', ')}] AS texts, md5(record_send(r)) AS bytes
           FROM (SELECT ${['n', ...columnsOf(types)].join(', ')} FROM ${name}) r ORDER BY n`,
      );
      return rows;
    });

  const stored = async (types: readonly TypeValues[], rows: number): Promise<void> => {
    assert.equal(rows, VALUE_ROWS, 'rows counted are the rows sent');
    const picked = types.map((type) => `v${VALUES.indexOf(type)}`);
    await test.sql(
      `DROP TABLE IF EXISTS expected; ${table('expected', types)}; INSERT INTO expected SELECT day, n, ${picked.join(', ')} FROM source`,
    );
    const [wanted, found] = [await held('expected', types), await held('target', types)];
    assert.equal(found.length, VALUE_ROWS);
    for (const [n, row] of found.entries()) {
      const wrong = types.filter((_, i) => row.texts[i] !== wanted[n]?.texts[i]);
      assert.deepEqual(
        wrong.map(({ type, values }) => [type, values[n] ?? 'NULL']),
        [],
      );
      assert.equal(row.bytes, wanted[n]?.bytes, `row ${n}: the binary form differs`);
    }
  };

  const target = (types: readonly TypeValues[]) => test.sql(`DROP TABLE IF EXISTS target; ${table('target', types)}`);

  it('hold what they say: no two of a type are the same', async () => {
    const rows = await held('source', VALUES);
    for (const [i, { type, values }] of VALUES.entries()) {
      const texts = rows.map(({ texts }) => texts[i]);
      assert.equal(new Set(texts.slice(0, values.length)).size, values.length, type);
      assert.deepEqual(texts.slice(values.length), Array(VALUE_ROWS - values.length).fill(null), type);
    }
  });

  it('are the same from the same database', async () => {
    await target(VALUES);
    const pipeline = sqlPipeline(`SELECT ${everyColumn(VALUES).join(', ')} FROM source WHERE day = :date`, SETTINGS);
    await stored(VALUES, (await fill(database, fillRequest(pipeline))).rows);
  });

  const FORMATS = {
    binary: VALUES.filter(({ asText }) => !asText),
    text: VALUES,
  } as const;
  for (const [format, types] of Object.entries(FORMATS)) {
    it(`are the same from another PostgreSQL, sent as ${format}`, async () => {
      await target(types);
      const columns = types.map((type, i) => `v${VALUES.indexOf(type)} AS v${i}`);
      const pipeline = relayPipeline(`SELECT day, n, ${columns.join(', ')} FROM source WHERE day = :date`, SETTINGS);
      const formats: (string | undefined)[] = [];
      const outcome = await withStatements(
        {
          before: ({ text }) => {
            if (text.startsWith('COPY')) formats.push(/FORMAT (\w+)/.exec(text)?.[1]);
          },
        },
        () => fill(database, { ...fillRequest(pipeline), source }),
      );
      assert.deepEqual([...new Set(formats)], [format]);
      await stored(types, outcome.rows);
    });
  }

  const FORMS: Readonly<Record<string, (names: readonly string[], values: readonly unknown[]) => Row | RowValues>> = {
    objects: (names, values) => Object.fromEntries(names.map((name, i) => [name, values[i]])),
    arrays: (_, values) => values,
  };
  for (const [form, row] of Object.entries(FORMS)) {
    for (const stage of [true, false]) {
      const through = `from TypeScript, as ${form}, ${stage ? 'through the spool file' : 'straight'}`;

      it(`are the same ${through}, each in PostgreSQL’s own text form`, async () => {
        await target(VALUES);
        const { rows } = await withClient(test.superuserUrl, async (client) => {
          await client.query(`SET TimeZone = 'UTC'`);
          const texts = columnsOf(VALUES).map((column) => `${column}::text`);
          return client.query<{ n: number; texts: (string | null)[] }>(
            `SELECT n, ARRAY[${texts.join(', ')}] AS texts FROM source ORDER BY n`,
          );
        });
        const names = everyColumn(VALUES);
        const pipeline = typescriptPipeline(() => rows.map(({ n, texts }) => row(names, [KEY, n, ...texts])), {
          ...SETTINGS,
          columns: names,
        });
        const outcome = await fill(database, fillRequest({ ...pipeline, stage }));
        await stored(VALUES, outcome.rows);
      });

      it(`are the same ${through}, each as JavaScript has it`, async () => {
        // A value that JavaScript has none of its own for goes as text.
        const types = VALUES.filter(({ native }) => native);
        await target(types);
        const names = everyColumn(types);
        const texts = (await held('source', VALUES)).map((each) => each.texts);
        const pipeline = typescriptPipeline(
          function* () {
            for (let n = 0; n < VALUE_ROWS; n++) {
              const cells = types.map((type) => {
                const text = texts[n]?.[VALUES.indexOf(type)];
                return type.native?.[n] ?? (typeof text === 'string' ? Buffer.from(text, 'hex').toString() : undefined);
              });
              yield row(names, [KEY, n, ...cells]);
            }
          },
          { ...SETTINGS, columns: names },
        );
        const outcome = await fill(database, fillRequest({ ...pipeline, stage }));
        await stored(types, outcome.rows);
      });
    }
  }
});
