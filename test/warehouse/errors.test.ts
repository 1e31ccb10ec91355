import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { FAILURES, type FailureType } from '../../src/contract.js';
import type { Failure } from '../../src/failure.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, fills, KEY, NO_LOOKS_MS, settled, sqlPipeline, until, within } from '../support/fill.js';
import { pinned } from '../support/pinned.js';
import { type Fate, Proxy } from '../support/proxy.js';
import { type StatementHooks, unhooked, withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';

const FILL = sqlPipeline('SELECT :date AS day, g AS n FROM generate_series(1, 3) g');

describe('what the server answers a fill', () => {
  let test: TestDatabase;
  let superuser: pg.Client;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    await test.sql(`
      CREATE TABLE target (day date NOT NULL, n int NOT NULL UNIQUE CHECK (n < 1000));
      CREATE TABLE other (n int PRIMARY KEY);
      INSERT INTO other VALUES (1), (2), (3);
      GRANT UPDATE ON other TO ${test.workerRole};
      CREATE TABLE closed (n int);
      REVOKE ALL ON closed FROM ${test.workerRole}`);
    superuser = new pg.Client({ connectionString: test.superuserUrl });
    await superuser.connect();
    database = await openDatabase(test.url, { fills: 2, watchEveryMs: NO_LOOKS_MS });
  });

  after(async () => {
    await database.close();
    await superuser.end();
    await test.drop();
  });

  beforeEach(async () => {
    await test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim');
    await test.sql('INSERT INTO target VALUES ($1, 0)', [KEY]);
  });

  describe('is retried:', () => {
    it('57P01, a backend ended by an administrator while its query runs', async () => {
      const ended = sqlPipeline(
        'SELECT :date AS day, 1 AS n FROM pg_terminate_backend(pg_backend_pid()), pg_sleep(60)',
      );
      await retried('DatabaseUnavailable', '57P01', fillFirst(ended));
    });

    it('57P01, one ended between two statements', () =>
      retried('DatabaseUnavailable', '57P01', fillFirst(FILL, beforeDelete(endBackend))));

    it('25P03, a transaction that stood idle', () => {
      const soon = pinned('idle_in_transaction_session_timeout', () => '50');
      return retried('DatabaseUnavailable', '25P03', fillFirst(FILL, { rewrite: soon, ...beforeDelete(backendGone) }));
    });

    it('40001, a row that another transaction changed', () => {
      const repeatable: StatementHooks['rewrite'] = ({ kind }) =>
        kind === 'begin' ? { text: 'BEGIN ISOLATION LEVEL REPEATABLE READ', values: [] } : undefined;
      const change = async (): Promise<void> => void (await test.sql('UPDATE target SET n = n'));
      return retried('Conflict', '40001', fillFirst(FILL, { rewrite: repeatable, ...beforeDelete(change) }));
    });

    it('no error, but rows that another session writes under the fill’s hands, after its DELETE', async () => {
      const hooks: StatementHooks = {
        before: ({ kind }) => (kind === 'kept' ? write() : undefined),
      };
      const write = async (): Promise<void> => void (await test.sql('INSERT INTO target VALUES ($1, 7)', [KEY]));
      const failure = await fillFirst(FILL, hooks);
      assert.deepEqual([failure?.type, failure?.final], ['Conflict', false]);
      assert.deepEqual(await test.sql('SELECT n FROM target ORDER BY n'), [{ n: 0 }, { n: 7 }]);
    });

    it('40P01, a deadlock', () =>
      withClient(test.superuserUrl, async (other) => {
        // It is the fill that looks for a deadlock, which is there once it waits too.
        await other.query(`SET deadlock_timeout = '10min'; BEGIN`);
        await other.query('SELECT FROM other WHERE n = 1 FOR UPDATE');
        const { rows } = await other.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
        let deleting: Promise<unknown> | undefined;
        const before: StatementHooks['before'] = async ({ kind }) => {
          if (kind !== 'insert' || deleting) return;
          deleting = other.query('DELETE FROM target');
          await unhooked(() =>
            until('the other waits for the fill’s rows', async () => {
              const waits = await superuser.query(
                `SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'`,
                [rows[0]?.pid],
              );
              return waits.rows.length > 0;
            }),
          );
        };
        const failure = await fillFirst(sqlPipeline('SELECT :date AS day, n FROM other FOR UPDATE'), { before });
        assert.ok(deleting);
        await within('the other transaction', deleting);
        await other.query('ROLLBACK');
        await retried('Conflict', '40P01', Promise.resolve(failure));
      }));

    it('55P03, a lock that is not to be had', () =>
      withClient(test.ownerUrl, async (owner) => {
        await owner.query('BEGIN');
        await owner.query('SELECT FROM other WHERE n = 1 FOR UPDATE');
        await retried(
          'Conflict',
          '55P03',
          fillFirst(sqlPipeline('SELECT :date AS day, n FROM other FOR UPDATE NOWAIT')),
        );
      }));

    it('53300, no connection left, and it says where', async () => {
      const full = await openDatabase(test.url, { fills: 1 });
      let failed: Failure;
      try {
        await superuser.query(`ALTER DATABASE ${test.name} CONNECTION LIMIT 1`);
        failed = await failsAs(fill(full, fillRequest(FILL)), 'DatabaseUnavailable');
      } finally {
        // Before anything is looked at, which may need a connection.
        await superuser.query(`ALTER DATABASE ${test.name} CONNECTION LIMIT -1`);
        await full.close();
      }
      const failure = await retried('DatabaseUnavailable', '53300', Promise.resolve(failed));
      assert.match(failure.message, new RegExp(`^${test.name} at 127\\.0\\.0\\.1:\\d+: `));
    });

    it('55000, a database that takes no connections for now', async () => {
      const shut = await openDatabase(test.url, { fills: 1 });
      let failed: Failure;
      try {
        await allowConnections(false);
        failed = await failsAs(fill(shut, fillRequest(FILL)), 'DatabaseUnavailable');
      } finally {
        await allowConnections(true);
        await shut.close();
      }
      await retried('DatabaseUnavailable', '55000', Promise.resolve(failed));
    });

    for (const fate of ['cut', 'pass and cut'] as const) {
      it(`no answer at all: a broken socket (${fate})`, async () => {
        await withProxy(fate, (broken) =>
          retried('DatabaseUnavailable', undefined, failsAs(fill(broken, fillRequest(FILL)), 'DatabaseUnavailable')),
        );
      });
    }

    it('no server at all', async () => {
      const proxy = await Proxy.before(test.url);
      const url = proxy.url(test.url);
      await proxy.close();
      await retried('DatabaseUnavailable', undefined, failsAs(openDatabase(url, { fills: 1 }), 'DatabaseUnavailable'));
    });

    it('57014 that nobody of us asked for, as a fault of the pipeline: three times at most', async () => {
      const run = randomUUID();
      const cancelled = sqlPipeline(
        'SELECT :date AS day, 1 AS n FROM pg_cancel_backend(pg_backend_pid()), pg_sleep(60)',
      );
      for (let attempt = 1; attempt <= 3; attempt++) {
        const failure = await failsAs(fill(database, fillRequest(cancelled, { run, attempt })), 'TimedOut');
        assert.deepEqual([failure.options.sqlstate, failure.final], ['57014', attempt === 3]);
      }
    });
  });

  describe('is final:', () => {
    const cases: readonly (readonly [
      sqlstate: string,
      type: FailureType,
      what: string,
      query: string,
      says: RegExp,
    ])[] = [
      ['42601', 'InvalidPipeline', 'a syntax error', 'SELEC :date AS day, 1 AS n', /SELEC/],
      ['42703', 'SchemaMismatch', 'a column that is not there', 'SELECT :date AS day, nobody AS n', /nobody/],
      ['42P01', 'SchemaMismatch', 'a table that is not there', 'SELECT :date AS day, n FROM nowhere', /nowhere/],
      ['42501', 'PermissionDenied', 'a table that may not be read', 'SELECT :date AS day, n FROM closed', /closed/],
      ['23514', 'DataError', 'a row that breaks a CHECK', 'SELECT :date AS day, 1000 AS n', /target_n_check/],
      [
        '23505',
        'DataError',
        'a row that breaks a unique key',
        'SELECT :date AS day, 1 AS n FROM other',
        /target_n_key/,
      ],
      ['23502', 'DataError', 'a NULL that may not be', 'SELECT :date AS day, NULL::int AS n', /column "n"/],
      ['22012', 'DataError', 'a division by zero', 'SELECT :date AS day, 1 / (n - 1) AS n FROM other', /22012/],
      ['22003', 'DataError', 'a number out of range', 'SELECT :date AS day, n * 3000000000 AS n FROM other', /22003/],
    ];
    for (const [sqlstate, type, what, query, says] of cases) {
      it(`${sqlstate}, ${what}`, async () => {
        const run = randomUUID();
        const failure = await failsAs(fill(database, fillRequest(sqlPipeline(query), { run })), type);
        assert.equal(failure.options.sqlstate, sqlstate);
        assert.equal(failure.final, true);
        assert.match(failure.message, says);
        await oldRowsStand();
      });
    }
  });

  async function fillFirst(pipeline: Pipeline, hooks: StatementHooks = {}): Promise<Failure | undefined> {
    return (await within('the fill', settled(withStatements(hooks, () => fill(database, fillRequest(pipeline))))))
      .failure;
  }

  /** A failure that uses up none of the pipeline's tries, with the server's code where it gave one; the old rows stand. */
  async function retried(
    type: FailureType,
    sqlstate: string | undefined,
    failing: Promise<Failure | undefined>,
  ): Promise<Failure> {
    const failure = await failing;
    assert.ok(failure, 'the fill ended well');
    assert.deepEqual([failure.type, failure.options.sqlstate, failure.final], [type, sqlstate, false], failure.message);
    assert.equal(FAILURES[failure.type], 'world');
    await oldRowsStand();
    return failure;
  }

  async function oldRowsStand(): Promise<void> {
    assert.deepEqual(await test.sql('SELECT n FROM target'), [{ n: 0 }]);
    assert.deepEqual(await fills(test), []);
  }

  /** What happens to a fill's backend between its look and its DELETE. */
  function beforeDelete(action: (pid: number) => Promise<void>): StatementHooks {
    return {
      before: ({ kind, client }) => {
        if (kind !== 'delete') return undefined;
        return unhooked(async () => {
          const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
          await action(rows[0]?.pid ?? 0);
        });
      },
    };
  }

  async function endBackend(pid: number): Promise<void> {
    await superuser.query('SELECT pg_terminate_backend($1)', [pid]);
    await backendGone(pid);
  }

  async function backendGone(pid: number): Promise<void> {
    await until('the backend has gone', async () => {
      const { rows } = await superuser.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid]);
      return rows.length === 0;
    });
  }

  /** From another database, since nobody may shut the one he is in. */
  async function allowConnections(allowed: boolean): Promise<void> {
    await withClient(test.superuserUrl.replace(/[^/]*$/, 'postgres'), async (client) => {
      await client.query(`ALTER DATABASE ${test.name} ALLOW_CONNECTIONS ${allowed}`);
    });
  }

  async function withProxy(fate: Fate, use: (database: Database) => Promise<unknown>): Promise<void> {
    const proxy = await Proxy.before(test.url);
    const through = await openDatabase(proxy.url(test.url), { fills: 1 });
    try {
      proxy.restart({ onMessage: ({ sql }) => (sql.startsWith('DELETE') ? fate : 'pass') });
      await use(through);
    } finally {
      await through.close();
      await proxy.close();
    }
  }
});
