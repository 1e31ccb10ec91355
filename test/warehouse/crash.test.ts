import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { PostgresServer } from '../../src/dev/postgres.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { endFill } from '../../src/warehouse/end-fill.js';
import { fill } from '../../src/warehouse/fill.js';
import { startPrivatePostgres } from '../support/database.js';
import {
  failsAs,
  fillRequest,
  HANG_LIMIT_MS,
  KEY,
  NO_LOOKS_MS,
  settled,
  sqlPipeline,
  until,
  within,
} from '../support/fill.js';
import { lockWaits, untilLetGo } from '../support/lock-waits.js';
import { createPrivateDatabase, type PrivateDatabase } from '../support/private-database.js';
import { fillWithRetries } from '../support/retry.js';
import { type StatementHooks, unhooked, withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';

/** Starting, crashing and recovering a server takes a while on a busy machine. */
const SERVER_LIMIT_MS = 300_000;

/** The WAL writer would save, within its delay, what was not flushed at COMMIT. */
const SETTINGS = { wal_writer_delay: '10s' };

const KEYS = ['2024-03-01', '2024-03-02', '2024-03-03', '2024-03-04', '2024-03-05'];
/** Sleeps as long as the table `pause` says. */
const FILL = sqlPipeline(
  'SELECT :date AS day, g::text AS n FROM pg_sleep((SELECT seconds FROM pause)), generate_series(1, 3) g',
);

describe('a server that crashes', () => {
  let server: PostgresServer;
  let test: PrivateDatabase;
  let database: Database;

  before(async function () {
    this.timeout(SERVER_LIMIT_MS);
    server = await startPrivatePostgres({ settings: SETTINGS });
    test = await createPrivateDatabase(server);
    await test.sql('CREATE TABLE target (day date NOT NULL, n text NOT NULL)');
    await test.sql('CREATE TABLE pause (seconds float8)');
    database = await openDatabase(test.url, { fills: 5, watchEveryMs: NO_LOOKS_MS });
  });

  after(async function () {
    this.timeout(SERVER_LIMIT_MS);
    await database.close();
    await server.stop();
  });

  beforeEach(async () => {
    await test.sql('TRUNCATE target, pause, repave.fill, repave.partition, repave.claim');
    await test.sql('INSERT INTO pause VALUES (0)');
    await test.sql(`INSERT INTO target SELECT d::date, 'old' FROM unnest($1::text[]) d`, [[KEY, ...KEYS]]);
  });

  describe('and a role whose default is synchronous_commit = off:', () => {
    before(() => setRole('synchronous_commit = off'));
    after(() => setRole('synchronous_commit = DEFAULT'));

    for (const [how, crash] of [
      ['stopped at once', () => server.stop('immediate')],
      ['killed', () => server.kill()],
    ] as const) {
      it(`a fill is there with its ledger row after the server was ${how} right behind it`, async function () {
        this.timeout(SERVER_LIMIT_MS);
        const run = randomUUID();
        const filled = await fill(database, fillRequest(FILL, { run }));
        await crash();
        await restart();
        assert.deepEqual(await seen(), { rows: '1,2,3', run, fence: filled.fence });
        const again = await fillWithRetries((attempt) => fill(database, fillRequest(FILL, { run, attempt })), 2);
        assert.equal(again.outcome.found, true);
      });
    }

    it('a fill that does not pin it is lost', async function () {
      this.timeout(SERVER_LIMIT_MS);
      const unpinned: StatementHooks['rewrite'] = ({ text, values }) => ({
        text: text.replaceAll("IN ('off', 'local')", "= 'never'"),
        values,
      });
      // Each time but when the WAL writer has just come by.
      for (let time = 1; ; time++) {
        await withStatements({ rewrite: unpinned }, () => fill(database, fillRequest(FILL)));
        await server.stop('immediate');
        await restart();
        const { rows, run } = await seen();
        if (run === null) return assert.equal(rows, 'old');
        assert.ok(time < 5, 'it was there each time');
        await test.sql(`TRUNCATE repave.partition; UPDATE target SET n = 'old'`);
      }
    });
  });

  describe('and a role whose default is repeatable read and read only:', () => {
    before(() => setRole("default_transaction_isolation = 'repeatable read'", 'default_transaction_read_only = on'));
    after(() => setRole('default_transaction_isolation = DEFAULT', 'default_transaction_read_only = DEFAULT'));

    it('two runs fill one empty window at once, and both end well', async () => {
      for (let round = 0; round < 5; round++) {
        await test.sql('TRUNCATE target, repave.partition');
        assert.deepEqual(await together(), [undefined, undefined]);
        assert.equal((await seen()).rows, '1,2,3');
      }
    });

    it('one of them fails where BEGIN does not say what it needs', async () => {
      await test.sql('TRUNCATE target');
      // The second waits once: between two waits, each of which has a snapshot of its own, the first might end.
      const once = lockWaits(HANG_LIMIT_MS);
      const bare: StatementHooks['rewrite'] = (statement) =>
        statement.kind === 'begin' ? { text: 'BEGIN READ WRITE', values: [] } : once(statement);
      // However slow the machine is, the second waits for the first, and has its snapshot by then.
      let first = true;
      const before: StatementHooks['before'] = async ({ kind }) => {
        if (kind !== 'delete' || !first) return;
        first = false;
        await unhooked(() => until('the other waits for the window', windowIsAwaited));
      };
      assert.ok((await together({ rewrite: bare, before })).includes('Conflict'));
    });

    async function windowIsAwaited(): Promise<boolean> {
      const waits = await test.admin(`SELECT FROM pg_stat_activity WHERE wait_event = 'advisory'`);
      return waits.length > 0;
    }

    /** How two runs at once on one window end. The query takes a moment, so that the second waits for the first. */
    async function together({ rewrite, before }: StatementHooks = {}): Promise<(string | undefined)[]> {
      await test.sql('UPDATE pause SET seconds = 0.2');
      const hooks: StatementHooks = { before, rewrite: (statement) => rewrite?.(statement) ?? untilLetGo(statement) };
      const both = [1, 2].map(() => withStatements(hooks, () => settled(fill(database, fillRequest(FILL)))));
      return (await within('both runs', Promise.all(both))).map(({ failure }) => failure?.type);
    }
  });

  it('a COMMIT ended while it waits for a standby is a fill, which the next attempt and endFill return', async () => {
    const run = randomUUID();
    const hooks: StatementHooks = {
      after: ({ kind }) => (kind === 'guard' ? unhooked(commitsWait) : undefined),
    };
    const failed = withStatements(hooks, () =>
      failsAs(fill(database, fillRequest(FILL, { run })), 'DatabaseUnavailable'),
    );
    try {
      const ended = `application_name LIKE 'repave ${run}/%'`;
      await until('the COMMIT waits, and is ended', async () => (await endWaiting(ended)) === 1);
      await within('the fill', failed);
    } finally {
      await nameStandby('');
    }
    const { outcome } = await fillWithRetries((attempt) => fill(database, fillRequest(FILL, { run, attempt })), 2);
    assert.equal(outcome.found, true);
    assert.deepEqual(await seen(), { rows: '1,2,3', run, fence: outcome.fence });
    assert.equal((await endFill(database, { pipeline: FILL.name, key: KEY, run }))?.fence, outcome.fence);
  });

  it('by one backend killed takes five fills down, which leave the old rows and fill when tried again', async function () {
    this.timeout(SERVER_LIMIT_MS);
    await test.sql('UPDATE pause SET seconds = 600');
    const runs = KEYS.map((key) => ({ key, run: randomUUID() }));
    const failed = Promise.all(
      runs.map((place) => failsAs(fill(database, fillRequest(FILL, place)), 'DatabaseUnavailable')),
    );
    const pids = await until('five fills are open', async () => {
      const open = await test.admin<{ pid: number }>(`SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'`);
      return open.length === KEYS.length && open.map(({ pid }) => pid);
    });
    process.kill(pids[0] ?? assert.fail('no backend'), 'SIGKILL');
    await within('the five fills', failed);
    await until(
      'the server is back',
      () =>
        test.sql('SELECT').then(
          () => true,
          () => false,
        ),
      SERVER_LIMIT_MS,
    );
    assert.deepEqual(await test.sql(`SELECT DISTINCT n FROM target`), [{ n: 'old' }]);
    await test.sql('UPDATE pause SET seconds = 0');
    for (const place of runs) {
      const { outcome } = await fillWithRetries(
        (attempt) => fill(database, fillRequest(FILL, { ...place, attempt })),
        2,
      );
      assert.deepEqual([outcome.found, outcome.rows, outcome.deleted], [false, 3, 1]);
    }
  });

  async function restart(): Promise<void> {
    server = await startPrivatePostgres({ dir: server.dir, port: server.port, settings: SETTINGS });
    test = test.on(server);
    await reopen();
  }

  /** What a role has by default, its new connections have. */
  async function setRole(...settings: string[]): Promise<void> {
    for (const setting of settings) await test.admin(`ALTER ROLE ${test.workerRole} SET ${setting}`);
    await reopen();
  }

  async function reopen(): Promise<void> {
    await database.close();
    database = await openDatabase(test.url, { fills: 5, watchEveryMs: NO_LOOKS_MS });
  }

  /** Makes COMMITs wait for a standby that there is not, and returns once one does. */
  async function commitsWait(): Promise<void> {
    await nameStandby('nobody');
    await until('a COMMIT waits', () =>
      withClient(test.superuserUrl, async (client) => {
        const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
        let over = false;
        const probe = client.query('CREATE TABLE probe (); DROP TABLE probe').then(
          () => (over = true),
          () => (over = true),
        );
        const waiting = async (): Promise<boolean> => (await endWaiting(`pid = ${rows[0]?.pid}`)) > 0;
        const waited = await until('the probe waits or is over', async () =>
          (await waiting()) ? 'waits' : over && 'over',
        );
        await probe;
        return waited === 'waits';
      }),
    );
  }

  /** Lets COMMITs wait for a standby of this name, or with '' for none. Each process of the server hears of it by itself. */
  async function nameStandby(name: string): Promise<void> {
    await test.admin(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await test.admin('SELECT pg_reload_conf()');
  }

  /** Ends the backends that wait for a standby in their COMMIT. Returns how many. */
  async function endWaiting(condition: string): Promise<number> {
    const ended = await test.admin(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND ${condition}`,
    );
    return ended.length;
  }

  /** Rows of the window, and what the ledger says of them. */
  async function seen(): Promise<{ rows: string | null; run: string | null; fence: number | null }> {
    const [row] = await test.sql<{ rows: string | null; run: string | null; fence: number | null }>(
      `SELECT (SELECT string_agg(n, ',' ORDER BY n) FROM target WHERE day = $1) AS rows, p.run, p.fence::float8 AS fence
         FROM (SELECT) one LEFT JOIN repave.partition p ON p.key = $2`,
      [KEY, KEY],
    );
    return row ?? { rows: null, run: null, fence: null };
  }
});
