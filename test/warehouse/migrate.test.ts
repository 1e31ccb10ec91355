import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { ledgerId, registerPipeline } from '../../src/warehouse/ledger.js';
import {
  grantsFor,
  ledgerState,
  mayMigrate,
  migrate,
  pendingMigrations,
  REGISTRY_LOCK,
} from '../../src/warehouse/migrate.js';
import { partitionHistory, partitionRows } from '../../src/warehouse/partitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, sqlPipeline, until, withWorker } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const LEDGER = [
  'backfill',
  'claim',
  'failure',
  'fill',
  'ledger',
  'migration',
  'notice',
  'partition',
  'pipeline',
  'run_key',
];

describe('migrating the ledger', () => {
  let test: TestDatabase;

  beforeEach(async () => {
    test = await createTestDatabase({ ledger: false });
  });
  afterEach(async () => {
    await test.drop();
  });

  const asOwner = async <T>(work: (database: Database) => Promise<T>): Promise<T> => {
    const database = await openDatabase(test.ownerUrl, { fills: 2 });
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  };
  const tables = async () =>
    (await test.sql(`SELECT tablename FROM pg_tables WHERE schemaname = 'repave' ORDER BY 1`)).map(
      ({ tablename }) => tablename,
    );

  it('makes it once; again changes nothing', async () => {
    await asOwner(async (database) => {
      assert.equal(await ledgerState(database), 'missing');
      assert.equal(await mayMigrate(database), true);
      const pending = (await pendingMigrations(database)).map(({ name }) => name);
      assert.deepEqual(await tables(), [], 'looking writes nothing');

      assert.deepEqual(await migrate(database), pending);
      assert.equal(pending[0], '000001_ledger');
      assert.deepEqual(await tables(), LEDGER);
      assert.equal(await ledgerState(database), 'current');
      const id = await ledgerId(database);
      assert.match(id, /^[0-9a-f-]{36}$/);

      assert.deepEqual(await migrate(database), []);
      assert.deepEqual(await pendingMigrations(database), []);
      assert.equal(await ledgerId(database), id);
    });
  });

  for (const isolation of ['read committed', 'repeatable read', 'serializable']) {
    it(`may be tried by ten at once under ${isolation}: one does it, all end well`, async () => {
      const { username } = new URL(test.ownerUrl);
      await asSuperuser(
        test,
        `ALTER ROLE ${username} IN DATABASE ${test.name} SET default_transaction_isolation = '${isolation}'`,
      );
      // All have begun, and wait, before the first may go on.
      const applied = await withClient(test.superuserUrl, async (gate) => {
        await gate.query('SELECT pg_advisory_lock($1::bigint)', [REGISTRY_LOCK]);
        const all = Promise.all(Array.from({ length: 10 }, () => asOwner(migrate)));
        await until('all ten wait for the lock', async () => {
          const [row] = await test.sql<{ waiting: number }>(
            `SELECT count(*)::int AS waiting FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
          );
          return row?.waiting === 10;
        });
        await gate.query('SELECT pg_advisory_unlock($1::bigint)', [REGISTRY_LOCK]);
        return all;
      });
      assert.deepEqual(applied.filter((names) => names.length > 0).length, 1);
      assert.deepEqual((await test.sql('SELECT count(*)::int AS n FROM repave.ledger'))[0], { n: 1 });
      assert.deepEqual(await tables(), LEDGER);
    });
  }

  it('is all or nothing: what fails half-way leaves the ledger as it was', async () => {
    await test.sql('CREATE SCHEMA repave; CREATE TABLE repave.fill (mine int)');
    await asOwner(async (database) => {
      const failure = await failsAs(migrate(database), 'InvalidPipeline');
      assert.match(failure.message, /42P07.*"fill"/);
    });
    assert.deepEqual(await tables(), ['fill']);
  });

  it('goes into a schema that an administrator has made', async () => {
    const { username } = new URL(test.ownerUrl);
    await asSuperuser(
      test,
      `CREATE SCHEMA repave AUTHORIZATION ${username}; REVOKE CREATE ON DATABASE ${test.name} FROM ${username}`,
    );
    await asOwner(async (database) => {
      assert.equal(await mayMigrate(database), true);
      await migrate(database);
      assert.equal(await ledgerState(database), 'current');
    });
  });

  it('is refused to a role that may not, as PermissionDenied', async () => {
    await withWorker(test, async (database) => {
      assert.equal(await ledgerState(database), 'missing');
      assert.equal(await mayMigrate(database), false);
      const failure = await failsAs(migrate(database), 'PermissionDenied');
      assert.match(failure.message, /42501: permission denied for database/);
      assert.match((await failsAs(ledgerId(database), 'InvalidInput')).message, /no ledger.*repave migrate/);
    });
    assert.deepEqual(await tables(), []);
  });

  it('is refused for a ledger that is newer, which a worker refuses as well', async () => {
    await asOwner(async (database) => {
      await migrate(database);
      await test.sql(`INSERT INTO repave.migration (number, name) VALUES (999, '000999_later')`);
      assert.equal(await ledgerState(database), 'newer');
      assert.match((await failsAs(migrate(database), 'InvalidInput')).message, /migration 999.*Run the newer version/);
      assert.match((await failsAs(ledgerId(database), 'InvalidInput')).message, /newer.*Upgrade/);
    });
  });

  it('an older ledger is told from a current one, with the command to run', async () => {
    await asOwner(async (database) => {
      await migrate(database);
      await test.sql(
        `UPDATE repave.migration SET number = 0 WHERE number = (SELECT max(number) FROM repave.migration)`,
      );
      assert.equal(await ledgerState(database), 'older');
      assert.match((await failsAs(ledgerId(database), 'InvalidInput')).message, /older.*repave migrate/);
    });
  });

  it('takes a ledger of version 0.1.0 on with all that it holds', async () => {
    const first = readFileSync(new URL('../../src/warehouse/migrations/000001_ledger.sql', import.meta.url), 'utf8');
    const { workerRole: worker } = test;
    // As that version left it: its own migration and grants, a pipeline, a fill, a failure, a claim that runs, a backfill.
    await test.sql(`${first};
      CREATE TABLE repave.migration (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
      INSERT INTO repave.migration (number, name) VALUES (1, '000001_ledger');
      GRANT USAGE ON SCHEMA repave TO ${worker};
      GRANT SELECT ON repave.ledger, repave.migration TO ${worker};
      GRANT SELECT, INSERT, UPDATE ON repave.pipeline, repave.partition, repave.backfill TO ${worker};
      GRANT SELECT, INSERT, UPDATE, DELETE ON repave.claim TO ${worker};
      GRANT SELECT, INSERT ON repave.fill, repave.failure, repave.run_key TO ${worker};
      CREATE TABLE target (day date NOT NULL, n int)`);
    const pipeline = sqlPipeline('SELECT :date::date AS day, 1 AS n', { name: 'sales' });
    const fillAsBefore = (key: string, fence: number) => `
      INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint, rows_deleted, rows_inserted, seconds, checks, warnings)
      VALUES ('sales', '${key}', '${key}', '${key}', 'r', '1', 1, ${fence}, '${pipeline.fingerprint}', 0, 7, 0.5, '[]', '{}');
      INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
      VALUES ('sales', '${key}', 'filled', 7, '${pipeline.fingerprint}', now(), 'r', 1, ${fence})`;
    await test.sql(`${fillAsBefore('2024-02-28', 1)};
      INSERT INTO repave.pipeline (name, target, partition_column, by, zone, fingerprint)
      VALUES ('sales', 'public.target', 'day', 'day', 'UTC', '${pipeline.fingerprint}');
      INSERT INTO repave.failure (pipeline, key, run, attempt, fence, type, message) VALUES ('sales', '2024-02-27', 'r', 1, 2, 'CheckFailed', 'no');
      INSERT INTO repave.claim (pipeline, key, run, scheduled_at, attempt, deadline) VALUES ('sales', '2024-02-29', 'r', 0, 1, now());
      INSERT INTO repave.backfill (run, id, pipeline, input, total) VALUES ('r', 'backfill/sales/x', 'sales', '{}', 3)`);
    const id = await test.sql('SELECT id FROM repave.ledger');

    await withWorker(test, async (database) => {
      assert.equal(await ledgerState(database), 'older');
      assert.match((await failsAs(ledgerId(database), 'InvalidInput')).message, /older.*repave migrate/);
    });
    await asOwner(async (database) => {
      const later = (await migrate(database))[0];
      assert.equal(later, '000002_kinds');
      for (const grant of grantsFor(worker, test.name, [])) {
        if (grant.includes('FUNCTION')) await database.query(grant);
      }
    });
    assert.deepEqual(await test.sql('SELECT id FROM repave.ledger'), id);
    // A worker of that version that still runs writes as it did.
    await test.sql(fillAsBefore('2024-02-26', 3));
    await withWorker(test, async (database) => {
      await registerPipeline(database, pipeline);
      const outcome = await fill(database, fillRequest(pipeline));
      assert.equal(outcome.rows, 1);
      assert.deepEqual(
        (await partitionHistory(database, 'sales', '2024-02-28')).map((entry) =>
          entry.kind === 'fill' ? [entry.rows, entry.unchanged, entry.adopted] : entry,
        ),
        [[7, false, false]],
      );
      const renamed = { ...pipeline, name: 'sold', formerly: 'sales' };
      assert.equal((await registerPipeline(database, renamed))?.partitions, 3);
      assert.equal((await partitionRows(database, 'sold')).get('2024-02-28')?.rows, 7);
      assert.equal((await partitionHistory(database, 'sold', '2024-02-27')).length, 1);
    });
  });

  it('means the same under a search_path with a hostile schema first', async () => {
    const { username } = new URL(test.ownerUrl);
    await test.sql(`CREATE SCHEMA evil;
      CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
      CREATE FUNCTION evil.gen_random_uuid() RETURNS uuid LANGUAGE sql AS $$ SELECT '00000000-0000-0000-0000-000000000000'::uuid $$;
      CREATE FUNCTION evil.never(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
      CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = text, FUNCTION = evil.never);
      CREATE DOMAIN evil.text AS int`);
    await asSuperuser(
      test,
      `ALTER ROLE ${username} IN DATABASE ${test.name} SET search_path = evil, pg_catalog, public`,
    );
    await asOwner(async (database) => {
      await migrate(database);
      assert.deepEqual(await migrate(database), []);
      assert.equal(await ledgerState(database), 'current');
      assert.notEqual(await ledgerId(database), '00000000-0000-0000-0000-000000000000');
    });
    assert.deepEqual(await tables(), LEDGER);
  });

  it('gives each database an id of its own, and a run planned against another is WrongLedger', async () => {
    const other = await createTestDatabase();
    try {
      const id = await asOwner(async (database) => (await migrate(database), ledgerId(database)));
      await other.sql('CREATE TABLE target (day date NOT NULL)');
      await withWorker(other, async (database) => {
        const own = await ledgerId(database);
        assert.notEqual(own, id);
        const pipeline = sqlPipeline('SELECT :date::date AS day');
        const failure = await failsAs(fill(database, fillRequest(pipeline, { ledger: id })), 'WrongLedger');
        assert.ok(
          failure.message.includes(own) &&
            failure.message.includes(id) &&
            failure.message.includes('REPAVE_TASK_QUEUE'),
        );
        assert.equal(failure.final, false);
        assert.deepEqual(await other.sql('SELECT FROM repave.claim'), []);
        assert.equal((await fill(database, fillRequest(pipeline, { ledger: own }))).rows, 1);
      });
    } finally {
      await other.drop();
    }
  });
});
