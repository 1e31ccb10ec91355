import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { FailureType } from '../../src/contract.js';
import type { Failure } from '../../src/failure.js';
import type { Row } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';

/** What stands in every column but the partition's, as text, number and date: none of it may be seen in a failure. */
const MARKER = 'MARKER-7f3a';
const NUMBER = 777_333_111;
const MARKERS: readonly RegExp[] = [/7f3a/i, /777.?333.?111/, /1977-07-03/];

/** Everything of a failure that could reach a history, a log or a person. */
function assertRedacted(failure: Failure): void {
  const shown = [
    failure.message,
    failure.stack ?? '',
    String(failure),
    JSON.stringify(failure),
    JSON.stringify(failure.options),
    inspect(failure, { depth: 10, showHidden: true }),
  ].join('\n');
  for (const marker of MARKERS) assert.doesNotMatch(shown, marker);
  assert.equal(failure.cause, undefined);
}

const SOURCE = `CREATE TABLE source (day date, secret text, number bigint, born date);
  INSERT INTO source SELECT '${KEY}', '${MARKER}', ${NUMBER}, '1977-07-03' FROM generate_series(1, 2)`;
const COLUMNS = 'day date NOT NULL, secret text, number bigint, born date';
const ROW = { day: KEY, secret: MARKER, number: NUMBER, born: '1977-07-03' };
const TARGET = `CREATE TABLE target (${COLUMNS})`;

describe('a value of a row is in no failure', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(SOURCE);
  });

  /** Fills from SQL and from TypeScript, and expects the failure that `message` tells. */
  const leaks = async (
    type: FailureType,
    message: RegExp,
    {
      select = '*',
      rows = [ROW, ROW],
      table = 'target',
    }: { select?: string | null; rows?: readonly Row[] | null; table?: string } = {},
  ): Promise<void> => {
    const settings = { target: { table } };
    const pipelines = [
      ...(select === null
        ? []
        : [sqlPipeline(`SELECT ${select} FROM source WHERE day >= :date AND day < :end_date`, settings)]),
      ...(rows === null ? [] : [typescriptPipeline(() => rows, settings)]),
    ];
    for (const pipeline of pipelines) {
      await withWorker(test, async (database) => {
        const failure = await failsAs(fill(database, fillRequest(pipeline)), type);
        assertRedacted(failure);
        assert.match(failure.message, message);
      });
    }
  };

  it('23502: a NULL names its column', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, must text CONSTRAINT must_be NOT NULL DEFAULT 'x')`);
    await leaks('DataError', /23502.*column "must", table "public\.target"/, {
      select: '*, NULL AS must',
      rows: [{ ...ROW, must: null }],
    });
  });

  it('23505: a repetition names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT once UNIQUE (secret))`);
    await leaks('DataError', /23505.*constraint "once"/);
  });

  it('23505, deferred: a repetition names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT once UNIQUE (secret) DEFERRABLE INITIALLY DEFERRED)`);
    await leaks('DataError', /23505.*constraint "once"/);
  });

  it('23514: a CHECK names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT small CHECK (number < 10))`);
    await leaks('DataError', /23514.*constraint "small"/);
  });

  it('23514: a domain names its constraint', async () => {
    await test.sql(`CREATE DOMAIN small AS bigint CONSTRAINT smaller CHECK (VALUE < 10);
      CREATE TABLE target (day date NOT NULL, secret text, number small, born date)`);
    await leaks('DataError', /23514.*constraint "smaller"/);
  });

  it('23514: a missing partition names the table', async () => {
    await test.sql(`${TARGET} PARTITION BY LIST (secret)`);
    await leaks('DataError', /23514.*table "public\.target".*No partition/);
  });

  it('23503: a foreign key names its constraint', async () => {
    await test.sql(`CREATE TABLE secrets (secret text PRIMARY KEY);
      CREATE TABLE target (${COLUMNS}, CONSTRAINT known FOREIGN KEY (secret) REFERENCES secrets)`);
    await leaks('DataError', /23503.*constraint "known"/);
  });

  it('23P01: an exclusion names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT apart EXCLUDE USING btree (secret WITH =))`);
    await leaks('DataError', /23P01.*constraint "apart"/);
  });

  it('22P02: text that is no number', async () => {
    await test.sql(TARGET);
    await leaks('DataError', /22P02/, { select: 'day, born::text::date AS born, secret::int AS number', rows: null });
    await leaks('DataError', /22P02.*in row 2\b/, { select: null, rows: [ROW, { ...ROW, number: MARKER }] });
  });

  it('22003: a number out of range', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, number smallint)');
    await leaks('DataError', /22003/, { select: 'day, number', rows: [{ day: KEY, number: NUMBER }] });
  });

  it('22001: a text too long', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, secret varchar(3))');
    await leaks('DataError', /22001/, { select: 'day, secret', rows: [{ day: KEY, secret: MARKER }] });
  });

  it('22007: text that is no date', async () => {
    await test.sql(TARGET);
    await leaks('DataError', /22007/, { select: 'day, secret::date AS born', rows: [{ ...ROW, born: MARKER }] });
  });

  it('22012, 21000 and others that a query itself runs into', async () => {
    await test.sql(TARGET);
    await leaks('DataError', /22012/, {
      select: `day, secret, number / (length(secret) - ${MARKER.length}) AS number`,
      rows: null,
    });
    await leaks('DataError', /21000/, { select: 'day, (SELECT secret FROM source) AS secret', rows: null });
    await leaks('DataError', /22P02/, { select: `day, (secret::json)->>'x' AS secret`, rows: null });
    await leaks('DataError', /22\w{3}/, {
      select: `day, regexp_replace(secret, '(' || secret, '') AS secret`.replace(`'('`, `'*('`),
      rows: null,
    });
  });

  it('22P04 and the like: what COPY cannot read is never quoted', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, list int[], born date)');
    await leaks('DataError', /22P02.*in row 1\b/, { select: null, rows: [{ day: KEY, list: `{${MARKER}` }] });
    await leaks('DataError', /22P02.*in row 1\b/, { select: null, rows: [{ day: KEY, list: [MARKER] }] });
  });

  describe('an error that a trigger raises', () => {
    const CODES: Readonly<Record<string, FailureType>> = {
      P0001: 'DataError',
      '42501': 'PermissionDenied',
      '42P01': 'SchemaMismatch',
      '42703': 'SchemaMismatch',
      '40001': 'Conflict',
      '23505': 'DataError',
      '23514': 'DataError',
      '57014': 'TimedOut',
      '53100': 'DatabaseUnavailable',
      '55000': 'InvalidPipeline',
      '0A000': 'InvalidPipeline',
      '08006': 'DatabaseUnavailable',
      ZZ999: 'Unexpected',
    };
    for (const [code, type] of Object.entries(CODES)) {
      it(`with ${code} says none of its text, detail, hint, names or context`, async () => {
        await test.sql(`${TARGET};
          CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION USING ERRCODE = '${code}', MESSAGE = NEW.secret || ' permission denied for table ' || NEW.number,
              DETAIL = NEW.secret, HINT = NEW.secret, COLUMN = NEW.secret, CONSTRAINT = NEW.secret, DATATYPE = NEW.secret,
              TABLE = NEW.secret, SCHEMA = NEW.born::text;
          END $$;
          CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
        await leaks(type, new RegExp(`PostgreSQL answered ${code}`));
      });
    }

    it('of its own statement, whose text holds the row, says none of it', async () => {
      await test.sql(`${TARGET};
        CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          EXECUTE format('INSERT INTO %I VALUES (%L)', NEW.secret, NEW.number); RETURN NULL;
        END $$;
        CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
      await leaks('SchemaMismatch', /42P01/);
    });

    it('of a column or a cast in its own statement says none of it', async () => {
      await test.sql(`${TARGET};
        CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          EXECUTE format('SELECT %I FROM target', NEW.secret); RETURN NULL;
        END $$;
        CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
      await leaks('SchemaMismatch', /42703/);
    });

    it('as a warning or a notice goes nowhere', async () => {
      await test.sql(`${TARGET};
        CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          RAISE WARNING '%', NEW.secret; RAISE EXCEPTION '%', NEW.secret; END $$;
        CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
      await leaks('DataError', /P0001/);
    });
  });

  it('RowsOutsideWindow says only the partition column’s values', async () => {
    await test.sql(TARGET);
    await leaks('RowsOutsideWindow', /2 of 2 rows.*from 2024-03-05 to 2024-03-05/, {
      select: 'day + 5 AS day, secret, number, born',
      rows: [
        { ...ROW, day: '2024-03-05' },
        { ...ROW, day: '2024-03-05' },
      ],
    });
  });

  it('CheckFailed says only counts', async () => {
    await test.sql(TARGET);
    await withWorker(test, async (database) => {
      const pipeline = sqlPipeline('SELECT * FROM source', {
        checks: [
          { kind: 'unique', columns: ['secret'] },
          { kind: 'rows', max: 1 },
        ],
      });
      assertRedacted(await failsAs(fill(database, fillRequest(pipeline)), 'CheckFailed'));
    });
  });

  describe('of a TypeScript source:', () => {
    beforeEach(async () => {
      await test.sql(TARGET);
    });

    class MarkerError extends Error {
      override name = 'HttpError';
      readonly row = ROW;
    }
    const THROWN: Readonly<Record<string, () => unknown>> = {
      'an Error whose message and cause hold it': () => new Error(MARKER, { cause: new Error(MARKER) }),
      'an Error of another class, with the row beside it': () => new MarkerError(MARKER),
      'an Error that has it for a code': () => Object.assign(new Error('x'), { code: `${MARKER}` }),
      'an Error that has it for a name': () => Object.assign(new Error('x'), { name: MARKER }),
      'an AggregateError': () => new AggregateError([new Error(MARKER)], MARKER),
      'a string': () => MARKER,
      'the row itself': () => ROW,
      'a DOMException': () => new DOMException(MARKER, 'DataError'),
    };
    for (const [what, make] of Object.entries(THROWN)) {
      for (const when of ['at once', 'after a row'] as const) {
        it(`${what}, thrown ${when}`, async () => {
          await withWorker(test, async (database) => {
            const pipeline = typescriptPipeline(() => {
              if (when === 'at once') throw make();
              return (function* () {
                yield ROW;
                throw make();
              })();
            });
            const failure = await failsAs(fill(database, fillRequest(pipeline)), 'SourceFailed');
            assertRedacted(failure);
          });
        });
      }
    }

    it('a value that cannot be written', async () => {
      await test.sql('ALTER TABLE target ADD COLUMN bytes bytea, ADD COLUMN list int[]');
      const values: readonly (readonly [Row, RegExp])[] = [
        [{ secret: `${MARKER}\0` }, /Row 1, column "secret" \(text\): .*U\+0000/],
        [{ secret: `${MARKER}\ud800` }, /Row 1, column "secret" \(text\): .*surrogate/],
        [{ secret: { MARKER } }, /Row 1, column "secret" \(text\): an object/],
        [{ secret: Symbol(MARKER) }, /Row 1, column "secret" \(text\): a symbol/],
        [{ number: NUMBER + 0.5 }, /Row 1, column "number" \(bigint\): .*whole number/],
        [{ number: [NUMBER] }, /Row 1, column "number" \(bigint\): an array/],
        [{ born: new Date(MARKER) }, /Row 1, column "born" \(date\): the Date is invalid/],
        [{ born: new Date('1977-07-03') }, /Row 1, column "born" \(date\): a Date is an instant/],
        [{ number: Buffer.from(MARKER) }, /Row 1, column "number" \(bigint\): bytes/],
        [{ list: [{ MARKER }] }, /Row 1, column "list" \(integer\[\]\): an object/],
      ];
      for (const [row, message] of values) {
        await leaks('DataError', message, { select: null, rows: [{ ...ROW, ...row }] });
      }
    });

    it('a row with other keys, or that is none', async () => {
      await leaks('SchemaMismatch', /Row 2 .*"more"/, { select: null, rows: [ROW, { ...ROW, more: MARKER }] });
      await leaks('DataError', /a string/, { select: null, rows: [ROW, MARKER as unknown as Row] });
    });
  });

  it('recorded failures hold what the failure says and no more', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT once UNIQUE (secret))`);
    await withWorker(test, async (database) => {
      const request = fillRequest(sqlPipeline('SELECT * FROM source'));
      const failure = await failsAs(fill(database, request), 'DataError');
      const { message, type } = failure;
      await recordFailure(database, {
        pipeline: 'target',
        key: KEY,
        run: request.owner.run,
        attempt: 1,
        type,
        message,
      });
    });
    const ledger = JSON.stringify([
      await test.sql('SELECT * FROM repave.failure'),
      await test.sql('SELECT * FROM repave.partition'),
      await test.sql('SELECT * FROM repave.claim'),
    ]);
    assert.match(ledger, /23505/);
    for (const marker of MARKERS) assert.doesNotMatch(ledger, marker);
  });
});
