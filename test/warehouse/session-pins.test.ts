import assert from 'node:assert/strict';
import type pg from 'pg';
import { endFill } from '../../src/warehouse/end-fill.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline, registeredPipelines } from '../../src/warehouse/ledger.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import {
  failsAs,
  fillRequest,
  fills,
  KEY,
  ledgerRows,
  sqlPipeline,
  typescriptPipeline,
  until,
  withWorker,
} from '../support/fill.js';
import { setRoleDefaults } from '../support/superuser.js';
import { type Statement, unhooked, withStatements } from '../support/statements.js';

const QUERY = 'SELECT day, upper(note) AS note FROM source WHERE day >= :date AND day < :end_date';

describe('what the role has set', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TABLE source (day date NOT NULL, note varchar);
      INSERT INTO source VALUES ('${KEY}', 'a'), ('${KEY}', 'b'), ('2024-03-01', 'c');
      CREATE TABLE target (day date NOT NULL, note text)`);
  });

  const notes = async (): Promise<unknown[]> =>
    (await test.sql('SELECT note FROM target ORDER BY note')).map(({ note }) => note);

  describe('a search_path with a hostile schema first', () => {
    /** Everything there stands in for one of the server's own, and says wrong things. */
    const EVIL = `
      CREATE SCHEMA evil;
      CREATE FUNCTION evil.pg_advisory_xact_lock(int, int) RETURNS void LANGUAGE sql AS '';
      CREATE FUNCTION evil.pg_advisory_xact_lock_shared(bigint) RETURNS void LANGUAGE sql AS '';

      CREATE FUNCTION evil.upper(text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
      CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
      CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
      CREATE AGGREGATE evil.count(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '1000');
      CREATE FUNCTION evil.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
      CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never);
      CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
      CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never);
      CREATE FUNCTION evil.never(date, date) RETURNS boolean LANGUAGE sql AS 'SELECT false';
      CREATE OPERATOR evil.>= (LEFTARG = date, RIGHTARG = date, FUNCTION = evil.never);
      CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false);
      CREATE DOMAIN evil.float8 AS pg_catalog.float8 CHECK (false);
      CREATE VIEW evil.pg_settings AS SELECT 'search_path'::pg_catalog.text AS name, 'evil'::pg_catalog.text AS reset_val;
      CREATE TABLE evil.pg_stat_activity (pid int);
      GRANT USAGE ON SCHEMA evil TO PUBLIC`;

    beforeEach(async () => {
      await test.sql(EVIL);
      await setRoleDefaults(test, { search_path: 'evil, pg_catalog, public' });
    });

    /** Advisory locks that a fill holds just before its ledger's row. */
    const locksOfFill = async (rewrite?: (statement: Statement) => { text: string; values: readonly unknown[] }) => {
      let held = -1;
      const countLocks = async (): Promise<void> => {
        const [locks] = await test.sql<{ held: number }>(
          `SELECT count(*)::int AS held FROM pg_locks WHERE locktype = 'advisory' AND granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
        held = locks?.held ?? -1;
      };
      const pipeline = sqlPipeline(QUERY, { checks: [{ kind: 'rows', min: 2, max: 2 }] });
      const outcome = await withWorker(test, async (database) => {
        await registerPipeline(database, pipeline);
        return withStatements(
          { before: ({ kind }) => (kind === 'guard' ? unhooked(countLocks) : undefined), rewrite },
          () => fill(database, fillRequest(pipeline)),
        );
      });
      return { held, outcome };
    };

    it('changes no meaning: the locks are held, and there is one copy of the rows', async () => {
      for (let time = 0; time < 2; time++) {
        const { held, outcome } = await locksOfFill();
        assert.equal(held, 2, 'the grid’s and the window’s');
        assert.deepEqual([outcome.rows, outcome.deleted], [2, time * 2]);
      }
      assert.deepEqual(await notes(), ['A', 'B']);
      assert.equal((await fills(test)).length, 2);
    });

    it('would take the locks away, were the functions not named in full under the role’s own path', async () => {
      // These alone would already fail it.
      await test.sql('DROP OPERATOR evil.= (text, text), evil.= (bigint, bigint), evil.>= (date, date)');
      const { held } = await locksOfFill(({ kind, text, values }) => ({
        text: kind === 'lock' ? text.replaceAll('pg_catalog.pg_advisory', 'pg_advisory') : text,
        values: values.map((value) =>
          value === 'pg_catalog, evil, pg_catalog, public, pg_temp' ? 'evil, pg_catalog, public' : value,
        ),
      }));
      assert.equal(held, 0);
    });

    it('changes no meaning of what is said outside a fill', async () => {
      const pipeline = sqlPipeline(QUERY);
      const work = { pipeline: 'target', key: KEY, run: 'b0e5a7a8-58a0-4f0c-9f5c-5a4f8a4ff2b1' };
      await withWorker(test, async (database) => {
        await fill(database, fillRequest(pipeline, { run: work.run }));
        assert.equal((await endFill(database, work))?.rows, 2, 'its committed fill');

        const other = { ...work, run: '5a2d2d3e-0a75-4b43-8a86-2f0b5a1ff6d7' };
        await recordFailure(database, { ...other, attempt: 1, type: 'DataError', message: 'no' });
        await failsAs(fill(database, fillRequest(pipeline, { run: other.run })), 'StaleAttempt');
      });
      assert.deepEqual((await ledgerRows(test))[0]?.outcome, 'failed');
    });
  });

  it('a temporary table named like the source, or the target, hides neither', async () => {
    await withWorker(test, async (database) => {
      await withStatements(
        {
          before: async ({ kind, client }) => {
            // Whoever had the connection before, through a pooler, has left them there.
            if (kind !== 'begin') return;
            await unhooked(() =>
              client.query(`CREATE TEMPORARY TABLE IF NOT EXISTS source (day date, note varchar);
                INSERT INTO pg_temp.source VALUES ('${KEY}', 'temporary');
                CREATE TEMPORARY TABLE IF NOT EXISTS target (day date, note text)`),
            );
          },
        },
        () => fill(database, fillRequest(sqlPipeline(QUERY))),
      );
    });
    assert.deepEqual(await notes(), ['A', 'B']);
  });

  it('a search_path that has pg_temp first does not let temporary tables hide others either', async () => {
    await setRoleDefaults(test, { search_path: `pg_temp, "$user", public` });
    await withWorker(test, async (database) => {
      await withStatements(
        {
          before: async ({ kind, client }) => {
            if (kind === 'begin')
              await unhooked(() => client.query('CREATE TEMPORARY TABLE IF NOT EXISTS target (day date, note text)'));
          },
        },
        () => fill(database, fillRequest(sqlPipeline(QUERY))),
      );
    });
    assert.deepEqual(await notes(), ['A', 'B']);
  });

  const DEFAULTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'forms of dates, intervals and bytes': {
      DateStyle: `'SQL, DMY'`,
      IntervalStyle: 'sql_standard',
      bytea_output: 'escape',
    },
    'another syntax of strings': {
      standard_conforming_strings: 'off',
      escape_string_warning: 'off',
      backslash_quote: 'on',
    },
    'another meaning of NULL': { transform_null_equals: 'on', array_nulls: 'off' },
    'names always quoted': { quote_all_identifiers: 'on' },
    'transactions that are read-only': { default_transaction_read_only: 'on' },
    'transactions that are serializable': { default_transaction_isolation: 'serializable' },
    'transactions that are repeatable read and not durable': {
      default_transaction_isolation: `'repeatable read'`,
      synchronous_commit: 'off',
    },
    'rows hidden by policies': { row_security: 'on' },
  };
  for (const [what, defaults] of Object.entries(DEFAULTS)) {
    it(`${what}: a fill means the same`, async () => {
      await setRoleDefaults(test, defaults);
      await test.sql(
        `CREATE TABLE values_of (day timestamptz NOT NULL, span interval, bytes bytea, list text[], note text, n int)`,
      );
      const settings = { name: 'values_of', target: { table: 'values_of' } } as const;
      const query = sqlPipeline(
        String.raw`SELECT '2024-02-29T12:00Z'::timestamptz AS day, '1 day -2:00'::interval AS span, '\x5c00'::bytea AS bytes,
          '{NULL,a}'::text[] AS list, 'it\'||'s' AS note, count(*) FILTER (WHERE note = NULL) AS n FROM source WHERE day = :date`,
        settings,
      );
      const code = typescriptPipeline(
        () => [
          {
            day: '2024-02-29 12:00Z',
            span: '1 day -2:00',
            bytes: Buffer.from([0x5c, 0]),
            list: [null, 'a'],
            note: 'it\\s',
            n: 0,
          },
        ],
        settings,
      );
      for (const pipeline of [query, code]) {
        await withWorker(test, async (database) => {
          await registerPipeline(database, pipeline);
          assert.deepEqual(
            (await registeredPipelines(database)).map(({ target }) => target),
            ['public.values_of'],
          );
          for (let time = 0; time < 2; time++) {
            const outcome = await fill(database, fillRequest(pipeline));
            assert.equal(outcome.rows, 1);
            const none = await endFill(database, { pipeline: 'values_of', key: KEY, run: crypto.randomUUID() });
            assert.equal(none, undefined);
          }
        });
        assert.deepEqual(
          await test.sql(`SELECT day = '2024-02-29T12:00Z' AS day, span = '22 hours' AS span, encode(bytes, 'hex') AS bytes,
            list = ARRAY[NULL, 'a'] AS list, note, n FROM values_of`),
          [{ day: true, span: true, bytes: '5c00', list: true, note: 'it\\s', n: 0 }],
        );
      }
    });
  }

  it('limits of time end no statement of a fill', async () => {
    // Longer than a slow machine takes to BEGIN and pin them.
    const limits = {
      statement_timeout: '4000',
      lock_timeout: '1',
      idle_in_transaction_session_timeout: '4000',
      transaction_timeout: '4000',
    };
    await setRoleDefaults(test, limits);
    await test.sql('CREATE TABLE slow (day date NOT NULL, note text)');
    let waited = 0;
    await withWorker(test, async (database) => {
      await withStatements(
        {
          // Between two statements, and in one, for longer than each of the limits.
          before: async ({ kind }) => {
            if (kind !== 'delete' && kind !== 'guard') return;
            waited += 1;
            await new Promise((resolve) => setTimeout(resolve, 4_500));
          },
        },
        () => fill(database, fillRequest(sqlPipeline(`${QUERY} AND pg_sleep(2.25) IS NOT NULL`))),
      );
    });
    assert.equal(waited, 2);
    assert.deepEqual(await notes(), ['A', 'B']);
  });

  it('sessions that end when idle take nothing else with them', async () => {
    // Longer than a slow machine takes between two statements.
    await setRoleDefaults(test, { idle_session_timeout: '5000' });
    await withWorker(test, async (database) => {
      await fill(database, fillRequest(sqlPipeline(QUERY)));
      await until('its sessions have ended', async () => {
        const [open] = await test.sql<{ n: number }>(
          `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND usename = $1`,
          [test.workerRole],
        );
        return open?.n === 0;
      });
      await fill(database, fillRequest(sqlPipeline(QUERY)));
    });
    assert.deepEqual(await notes(), ['A', 'B']);
  });

  it('is all back once the fill has given its connection away', async () => {
    await setRoleDefaults(test, { timezone: `'Asia/Tokyo'`, search_path: 'public' });
    const sessions = new Set<pg.Client>();
    await withWorker(test, async (database) => {
      await withStatements({ before: ({ client }) => void sessions.add(client) }, () =>
        fill(database, fillRequest(sqlPipeline(QUERY))),
      );
      for (const client of sessions) {
        const { rows } = await client.query<Record<string, string>>(
          `SELECT current_setting('timezone') AS zone, current_setting('search_path') AS path, current_setting('lock_timeout') AS lock,
             current_setting('row_security') AS rls, current_setting('application_name') AS name`,
        );
        assert.deepEqual(
          [rows[0]?.zone, rows[0]?.path, rows[0]?.lock, rows[0]?.rls],
          ['Asia/Tokyo', 'public', '0', 'on'],
        );
        assert.match(rows[0]?.name ?? '', /^repave( control)?$/);
      }
    });
    assert.ok(sessions.size > 0);
  });
});
