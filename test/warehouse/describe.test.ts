import assert from 'node:assert/strict';
import type { Place } from '../../src/pipeline/place.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import type { Database } from '../../src/warehouse/database.js';
import { openDatabase } from '../../src/warehouse/database.js';
import { describePipeline, type PipelineDescription } from '../../src/warehouse/describe.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, KEY, settled, sqlPipeline, typescriptPipeline } from '../support/fill.js';

type Settings = Parameters<typeof sqlPipeline>[1];

/** A place as tests name it: `column 1`, `setting target`, `query "the rest"`. */
function shown(place: Place, query: string): string {
  switch (place.kind) {
    case 'setting':
      return `setting ${place.path.map(String).join('.')}`;
    case 'check':
    case 'column':
      return `${place.kind} ${place.index}`;
    case 'query':
      return `query ${[...query].slice(place.characters).join('').split(/[\s(]/)[0]}`;
    case 'select':
      return 'select';
  }
}

describe('a pipeline held against the live database', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 2 });
    await test.sql(`
      CREATE TYPE mood AS ENUM ('sad', 'glad');
      CREATE DOMAIN positive AS int CHECK (VALUE > 0);
      CREATE DOMAIN a_day AS date;
      CREATE TABLE source (day date NOT NULL, n int, big bigint, note text, name varchar(9), mood mood, j json, flag boolean);
      INSERT INTO source VALUES ('${KEY}', 1, 2, 'x', 'y', 'sad', '{}', true);
      CREATE VIEW source_view AS SELECT * FROM source;
      CREATE TABLE target (day a_day NOT NULL, n int, note text, short varchar(3), mood mood, pos positive, amount numeric(12, 2),
        at timestamptz, arr int[], j jsonb, "Mixed ""case" text, made int GENERATED ALWAYS AS (n + 1) STORED);
      CREATE TABLE needy (day date NOT NULL, need int NOT NULL, kind text NOT NULL DEFAULT 'x', id int GENERATED ALWAYS AS IDENTITY);
      CREATE VIEW target_view AS SELECT * FROM target;
      CREATE SEQUENCE written;
      CREATE FUNCTION writes() RETURNS int IMMUTABLE LANGUAGE sql SECURITY DEFINER AS 'SELECT nextval(''written'')::int';
    `);
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  const describeQuery = (query: string, settings: Settings = {}): Promise<PipelineDescription> =>
    describePipeline(database, sqlPipeline(query, settings));

  /** Problems as `place: first words`. */
  async function problems(query: string, settings: Settings = {}): Promise<string[]> {
    const pipeline = sqlPipeline(query, settings);
    const described = await describePipeline(database, pipeline);
    return described.problems.map(({ place, message }) => `${shown(place, pipeline.query.text)}: ${message}`);
  }

  describe('finds nothing where a fill finds nothing', () => {
    const lists: [string, string?][] = [
      [':date AS day'],
      ['day, n', 'FROM source WHERE day >= :date AND day < :end_date'],
      ['s.day, s.n', 'FROM source s'],
      [':date AS day, NULL AS n, NULL AS mood, NULL AS pos, NULL AS arr, NULL AS j, NULL AS amount, NULL AS at'],
      ["'2024-02-29' AS day, '5' AS n, 'sad' AS mood, '7' AS pos, '1.5' AS amount, '2024-02-29Z' AS at, '{1,2}' AS arr, '{}' AS j"],
      [':date AS day, 1 AS pos, 2 AS amount, ARRAY[1, 2] AS arr, now() AS at, mood', 'FROM source'],
      [':date AS day, count(*) AS n, max(note) AS note, max(big) AS amount', 'FROM source'],
      [':date AS day, big AS n, n AS note', 'FROM source'],
      [':date AS day, name AS note, note AS short, j', 'FROM source'],
      [':date AS day, \'it\'\'s\' AS "Mixed ""case"'],
      [':key::date AS day, :key AS note, :start AS at'],
      ['day, n, note, name AS short, mood', 'FROM source_view'],
    ]; // prettier-ignore
    for (const [list, from = ''] of lists) {
      it(list, async () => {
        const query = `SELECT ${list} ${from}`;
        assert.deepEqual(await problems(query), []);
        assert.equal((await fill(database, fillRequest(sqlPipeline(query)))).rows, 1);
        // Beside another fault the columns are judged one by one.
        const [nope, ...others] = await problems(`SELECT ${list}, 1 AS nope ${from}`);
        assert.match(nope ?? '', /^column \d+: The column "nope" is not in/);
        assert.deepEqual(others, []);
      });
    }

    const whole = [
      'WITH q AS (SELECT * FROM source) SELECT day, n FROM q',
      "SELECT day, n FROM source UNION ALL SELECT :date, NULL FROM source WHERE note = 'none'",
      '(SELECT day, n FROM source)',
      'SELECT * FROM (SELECT day, n, note FROM source) q',
      'SELECT day, n FROM source ORDER BY n LIMIT 5 -- and a comment',
      'SELECT DISTINCT ON (day) day, n, note FROM source ORDER BY day, n;',
    ];
    for (const query of whole) {
      it(query, async () => {
        assert.deepEqual(await problems(query), []);
        assert.equal((await fill(database, fillRequest(sqlPipeline(query)))).rows, 1);
      });
    }
  });

  describe('finds what a fill fails on, and where', () => {
    const wrong: [string, RegExp[], Settings?][] = [
      ['SELECT :date AS day, note AS n FROM source', [/^column 1: The query gives "n" as text, and the column is of type integer/]],
      ["SELECT :date AS day, 'x' AS n", [/^column 1: The query gives "n" a text that the column’s type integer cannot read/]],
      ["SELECT :date AS day, 'happy' AS mood", [/^column 1: .*type mood cannot read/]],
      ['SELECT flag AS day, j AS n, n AS mood FROM source', [/^column 0: .*boolean.*a_day/, /^column 1: .*json.*integer/, /^column 2: .*integer.*mood/]],
      ['SELECT :date AS day, NULL AS n UNION ALL SELECT :date, NULL', [/^column 1: The query gives "n" as text/]],
      ['SELECT :date AS day, note AS n, 1 AS nope FROM source', [/^column 2: The column "nope" is not in public\.target/, /^column 1: /]],
      ['SELECT *, big AS amount FROM source', [/^column 2: The column "big" is not/, /^column 4: The column "name"/, /^column 7: The column "flag"/]],
      ['SELECT :date AS day, 1 AS n, 2 AS n', [/^column 2: The column "n" is given twice/]],
      ['SELECT :date AS day, 1 AS made', [/^column 1: The column "made" of public\.target is generated/]],
      ['SELECT 1 AS n', [/^select: The partition column "day" of public\.target is not given/]],
      ['SELECT :date AS day', [/^select: The column "need" of public\.needy is NOT NULL and is not given/], { target: { table: 'needy' } }],
      ['SELECT :date AS day, 1 AS need, 2 AS id', [/^column 2: The column "id" .*generated/], { target: { table: 'needy' } }],
      ['SELECT 1 AS n FROM no_such_table', [/^query no_such_table: PostgreSQL answered 42P01: relation "no_such_table" does not exist/, /^select: The partition column/]],
      ['SELECT :date AS day, nope FROM source', [/^query nope: .*column "nope" does not exist/, /^column 1: The column "nope" is not in/]],
      ['SELECT :date AS day, no_such(1) FROM source', [/^query no_such: .*42883/]],
      ['SELECT day, n FROM target_view', [/^select: The query of target reads its own target public\.target through a view/]],
      ['SELECT :date AS day', [/^setting target: The target "gone" of target is not there/], { target: { table: 'gone' } }],
      ['SELECT :date AS day', [/^setting partition\.column: The target "target" has no column "nope"/], { partition: { column: 'nope', by: 'day', zone: 'UTC' } }],
      ['SELECT :date AS day, 1 AS n', [/^setting partition\.column: .*"n" of "target" is of type integer/], { partition: { column: 'n', by: 'day', zone: 'UTC' } }],
      ['SELECT :date AS day', [/^setting scope: .*names the column "tenant"/], { scope: { tenant: 'acme' } }],
      ["SELECT :date AS day, 'sad' AS mood", [/^setting scope: .*its type mood cannot read/], { scope: { mood: 'happy' } }],
      ["SELECT :date AS day", [/^setting scope\.note: The column "note" of the scope is not given/], { scope: { note: 'x' } }],
      ['SELECT :date AS day', [/^setting create: .*must be declaratively partitioned/], { create: true }],
      ['SELECT :date AS day', [/^check 1: .*"nope"/, /^check 2: .*type integer.*cannot read/, /^check 3: .*sum \(note\)|^check 3: /], {
        checks: [
          { kind: 'rows', min: 1 },
          { kind: 'unique', columns: ['n', 'nope'] },
          { kind: 'accepted', column: 'n', values: ['one'] },
          { kind: 'range', column: 'nope', min: '1' },
          { kind: 'not_null', columns: ['n'] },
        ],
      }],
    ]; // prettier-ignore
    for (const [query, expected, settings] of wrong) {
      it(`${query} ${JSON.stringify(settings ?? '')}`, async () => {
        const found = await problems(query, settings);
        assert.equal(found.length, expected.length, found.join('\n'));
        for (const pattern of expected)
          assert.ok(
            found.some((problem) => pattern.test(problem)),
            `${pattern}\n${found.join('\n')}`,
          );
        const end = await settled(fill(database, fillRequest(sqlPipeline(query, settings))));
        assert.ok(end.failure, 'a fill must fail too');
      });
    }

    it('what TypeScript writes, by its columns', async () => {
      const code = typescriptPipeline(() => [], { columns: ['day', 'nope', 'made'], target: { table: 'target' } });
      const described = await describePipeline(database, code);
      assert.deepEqual(
        described.problems.map(({ place, message }) => `${shown(place, '')} ${message.slice(0, 18)}`),
        ['column 1 The column "nope" ', 'column 2 The column "made" '],
      );
    });

    it('a ready that gives no boolean', async () => {
      const ask = (text: string): Pipeline => {
        const { query } = sqlPipeline(text);
        return { ...sqlPipeline('SELECT :date AS day'), ready: { query, retryAfterMs: 1 } };
      };
      const found = async (text: string): Promise<string[]> =>
        (await describePipeline(database, ask(text))).problems.map(
          ({ place, message }) => `${shown(place, '')} ${message}`,
        );
      assert.deepEqual(await found('SELECT EXISTS (SELECT FROM source WHERE day = :date)'), []);
      assert.match(
        (await found('SELECT count(*) FROM source')).join(),
        /^setting ready The query `ready` of target gives a value of another type: expected one boolean/,
      );
      assert.match((await found('SELECT true, false')).join(), /gives 2 columns/);
      assert.match((await found('SELECT nope')).join(), /^setting ready PostgreSQL answered 42703/);
    });

    it('every reason at once why a table cannot be filled', async () => {
      await test.sql(`
        CREATE UNLOGGED TABLE bad (day date PRIMARY KEY, n int NOT NULL);
        CREATE UNLOGGED TABLE child (day date REFERENCES bad ON DELETE CASCADE)`);
      const found = await problems('SELECT :date AS day, note AS n FROM source', { target: { table: 'bad' } });
      assert.equal(found.length, 3, found.join('\n'));
      for (const pattern of [
        /^setting target: .*is UNLOGGED/,
        /^setting target: .*foreign keys that cascade \(child_day_fkey\)/,
        /^column 1: /,
      ])
        assert.ok(
          found.some((problem) => pattern.test(problem)),
          String(pattern),
        );
    });
  });

  it('shows the columns with their types and casts, and what is lost', async () => {
    const { columns, warnings, target, written } = await describeQuery(
      "SELECT :date AS day, 1.5 AS n, 'x' AS note, name AS short, 2.123::numeric(12, 3) AS amount, now()::timestamp AS at, note AS pos FROM source",
    );
    assert.equal(target, 'public.target');
    assert.deepEqual(written, ['day', 'n', 'note', 'short', 'amount', 'at', 'pos']);
    assert.deepEqual(
      columns.map(({ name, type, targetType, cast }) => [name, type, targetType, cast]),
      [
        ['day', 'date', 'a_day', 'assignment'],
        ['n', 'numeric', 'integer', 'lossy'],
        ['note', 'unknown', 'text', 'implicit'],
        ['short', 'character varying(9)', 'character varying(3)', 'lossy'],
        ['amount', 'numeric(12,3)', 'numeric(12,2)', 'lossy'],
        ['at', 'timestamp without time zone', 'timestamp with time zone', 'implicit'],
        ['pos', 'text', 'positive', undefined],
      ],
    );
    assert.deepEqual(
      warnings.filter(({ place }) => place.kind === 'column').map(({ message }) => message.split('. ')[0]),
      [
        '"n": numeric into integer rounds to whole numbers',
        '"short": character varying(9) into character varying(3) fails on more than 3 characters, and cuts blanks at their end',
        '"amount": numeric(12,3) into numeric(12,2) rounds to 2 decimal places',
      ],
    );
  });

  it('shows what a fill sends, with parameters of the newest partition or the first', async () => {
    const { sample } = await describeQuery('SELECT day, n, note\nFROM source WHERE day >= :date AND note = :key', {
      start: '2999-01-01',
      scope: { note: 'o’x' },
    });
    assert.deepEqual(sample, {
      key: '2999-01-01',
      statements: [
        {
          sql: 'DELETE FROM "target" WHERE "day" >= $1::pg_catalog.date AND "day" < $2::pg_catalog.date AND "note" = $3',
          parameters: [
            { name: 'lower', type: 'date', value: '2999-01-01' },
            { name: 'upper', type: 'date', value: '2999-01-02' },
            { name: 'note', type: 'text', value: 'o’x' },
          ],
        },
        {
          sql: 'INSERT INTO "target" ("day", "n", "note")\nSELECT day, n, note\nFROM source WHERE day >= ($1::pg_catalog.date) AND note = ($2::pg_catalog.text)',
          parameters: [
            { name: 'date', type: 'date', value: '2999-01-01' },
            { name: 'key', type: 'text', value: '2999-01-01' },
          ],
        },
      ],
    });
  });

  it('writes nothing, whatever the query calls', async () => {
    // The server calls what says that it is immutable as it plans, and a sequence goes on though the transaction is rolled back.
    const query = 'SELECT :date AS day, writes() AS n';
    const called = async (): Promise<unknown> =>
      (await test.sql<{ called: boolean }>('SELECT is_called AS called FROM written'))[0]?.called;
    assert.deepEqual(await problems(query), []);
    assert.equal(await called(), false);
    await fill(database, fillRequest(sqlPipeline(query)));
    assert.equal(await called(), true);
  });
});
