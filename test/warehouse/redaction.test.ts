import assert from 'node:assert/strict';
import type { FailureType } from '../../src/contract.js';
import { fill } from '../../src/warehouse/fill.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, withWorker } from '../support/fill.js';
import {
  assertRedacted,
  assertUnmarked,
  COLUMNS,
  failsRedacted,
  MARKER,
  NUMBER,
  ROW,
  SOURCE,
} from '../support/redaction.js';

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

  it('23502: a NULL names its column', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, must text CONSTRAINT must_be NOT NULL DEFAULT 'x')`);
    await failsRedacted(test, 'DataError', /23502.*column "must", table "public\.target"/, {
      select: '*, NULL AS must',
      rows: [{ ...ROW, must: null }],
    });
  });

  it('23505: a repetition names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT once UNIQUE (secret))`);
    await failsRedacted(test, 'DataError', /23505.*constraint "once"/);
  });

  it('23505, deferred: a repetition names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT once UNIQUE (secret) DEFERRABLE INITIALLY DEFERRED)`);
    await failsRedacted(test, 'DataError', /23505.*constraint "once"/);
  });

  it('23514: a CHECK names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT small CHECK (number < 10))`);
    await failsRedacted(test, 'DataError', /23514.*constraint "small"/);
  });

  it('23514: a domain names its constraint', async () => {
    await test.sql(`CREATE DOMAIN small AS bigint CONSTRAINT smaller CHECK (VALUE < 10);
      CREATE TABLE target (day date NOT NULL, secret text, number small, born date)`);
    await failsRedacted(test, 'DataError', /23514.*constraint "smaller"/);
  });

  it('23514: a missing partition names the table', async () => {
    await test.sql(`${TARGET} PARTITION BY LIST (secret)`);
    await failsRedacted(test, 'DataError', /23514.*table "public\.target".*No partition/);
  });

  it('23503: a foreign key names its constraint', async () => {
    await test.sql(`CREATE TABLE secrets (secret text PRIMARY KEY);
      CREATE TABLE target (${COLUMNS}, CONSTRAINT known FOREIGN KEY (secret) REFERENCES secrets)`);
    await failsRedacted(test, 'DataError', /23503.*constraint "known"/);
  });

  it('23P01: an exclusion names its constraint', async () => {
    await test.sql(`CREATE TABLE target (${COLUMNS}, CONSTRAINT apart EXCLUDE USING btree (secret WITH =))`);
    await failsRedacted(test, 'DataError', /23P01.*constraint "apart"/);
  });

  it('22P02: text that is no number', async () => {
    await test.sql(TARGET);
    await failsRedacted(test, 'DataError', /22P02/, {
      select: 'day, born::text::date AS born, secret::int AS number',
      rows: null,
    });
    await failsRedacted(test, 'DataError', /22P02.*in row 2\b/, {
      select: null,
      rows: [ROW, { ...ROW, number: MARKER }],
    });
  });

  it('22003: a number out of range', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, number smallint)');
    await failsRedacted(test, 'DataError', /22003/, { select: 'day, number', rows: [{ day: KEY, number: NUMBER }] });
  });

  it('22001: a text too long', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, secret varchar(3))');
    await failsRedacted(test, 'DataError', /22001/, { select: 'day, secret', rows: [{ day: KEY, secret: MARKER }] });
  });

  it('22007: text that is no date', async () => {
    await test.sql(TARGET);
    await failsRedacted(test, 'DataError', /22007/, {
      select: 'day, secret::date AS born',
      rows: [{ ...ROW, born: MARKER }],
    });
  });

  it('22012, 21000 and others that a query itself runs into', async () => {
    await test.sql(TARGET);
    await failsRedacted(test, 'DataError', /22012/, {
      select: `day, secret, number / (length(secret) - ${MARKER.length}) AS number`,
      rows: null,
    });
    await failsRedacted(test, 'DataError', /21000/, {
      select: 'day, (SELECT secret FROM source) AS secret',
      rows: null,
    });
    await failsRedacted(test, 'DataError', /22P02/, { select: `day, (secret::json)->>'x' AS secret`, rows: null });
    await failsRedacted(test, 'DataError', /22\w{3}/, {
      select: `day, regexp_replace(secret, '(' || secret, '') AS secret`.replace(`'('`, `'*('`),
      rows: null,
    });
  });

  it('22P04 and the like: what COPY cannot read is never quoted', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL, list int[], born date)');
    await failsRedacted(test, 'DataError', /22P02.*in row 1\b/, {
      select: null,
      rows: [{ day: KEY, list: `{${MARKER}` }],
    });
    await failsRedacted(test, 'DataError', /22P02.*in row 1\b/, { select: null, rows: [{ day: KEY, list: [MARKER] }] });
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
        await failsRedacted(test, type, new RegExp(`PostgreSQL answered ${code}`));
      });
    }

    it('of its own statement, whose text holds the row, says none of it', async () => {
      await test.sql(`${TARGET};
        CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          EXECUTE format('INSERT INTO %I VALUES (%L)', NEW.secret, NEW.number); RETURN NULL;
        END $$;
        CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
      await failsRedacted(test, 'SchemaMismatch', /42P01/);
    });

    it('of a column or a cast in its own statement says none of it', async () => {
      await test.sql(`${TARGET};
        CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          EXECUTE format('SELECT %I FROM target', NEW.secret); RETURN NULL;
        END $$;
        CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
      await failsRedacted(test, 'SchemaMismatch', /42703/);
    });

    it('as a warning or a notice goes nowhere', async () => {
      await test.sql(`${TARGET};
        CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          RAISE WARNING '%', NEW.secret; RAISE EXCEPTION '%', NEW.secret; END $$;
        CREATE TRIGGER act AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION act()`);
      await failsRedacted(test, 'DataError', /P0001/);
    });
  });

  it('RowsOutsideWindow says only the partition column’s values', async () => {
    await test.sql(TARGET);
    await failsRedacted(test, 'RowsOutsideWindow', /2 of 2 rows.*from 2024-03-05 to 2024-03-05/, {
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
    assertUnmarked(ledger);
  });
});
