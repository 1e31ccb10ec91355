import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type AddressInfo, createServer, Socket } from 'node:net';
import type pg from 'pg';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { endFill } from '../../src/warehouse/end-fill.js';
import { fill } from '../../src/warehouse/fill.js';
import { ledgerState, migrate, REGISTRY_LOCK } from '../../src/warehouse/migrate.js';
import { superuserPool } from '../support/at-work.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, fills, NO_LOOKS_MS, sqlPipeline, until, within } from '../support/fill.js';
import { HELD } from '../support/held.js';
import { untilLetGo } from '../support/lock-waits.js';
import { LOOK } from '../support/looks.js';
import { Proxy } from '../support/proxy.js';
import { type StatementHooks, type StatementKind, withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';

/** Milliseconds between two looks at a backend: short, so that the test is. */
const WATCH_EVERY_MS = 250;
/** The same where nothing is to be suspected: long enough that a slow machine answers four of them, and short enough for some. */
const PATIENT_MS = 2_000;
/** Looks that something outlives which the server is slow with: more than the two that would do to give it up. */
const MANY_LOOKS = 3;
/** So seldom that nothing but the cancel can end what stands still. */
const NEVER_MS = NO_LOOKS_MS;

const FAST = sqlPipeline('SELECT :date AS day, 1 AS n');
const SLOW = sqlPipeline('SELECT :date AS day, 1 AS n FROM pg_sleep(600)');
/** Sleeps while the table `held` has a row. */
const WAITS = sqlPipeline('SELECT :date AS day, waits() AS n', { name: 'slow' });

describe('a network that drops packets', () => {
  let test: TestDatabase;
  let superuser: pg.Pool;

  before(async () => {
    test = await createTestDatabase();
    await test.sql(`CREATE TABLE target (day date NOT NULL, n int NOT NULL); ${HELD}`);
    superuser = superuserPool(test);
  });

  after(async () => {
    await superuser.end();
    await test.drop();
  });

  describe('with no connection left that passes, the control pool’s neither', () => {
    /** Milliseconds between two looks, four of which end it: a slow machine answers within them while anything passes. */
    const WATCHED_MS = 1_000;

    it('ends the fill as DatabaseUnavailable', () =>
      withProxy(NEVER_MS, async (database, proxy) => {
        const run = randomUUID();
        // Only the query that is to stand still is watched: what comes before it may take its time.
        const before: StatementHooks['before'] = ({ kind }) =>
          void (kind === 'kept' && Reflect.set(database, 'watchEveryMs', WATCHED_MS));
        const failed = withStatements({ before }, () =>
          failsAs(fill(database, fillRequest(SLOW, { run })), 'DatabaseUnavailable'),
        );
        await within('the fill', Promise.all([failed, freezeOnceAsleep(run, proxy, failed)]));
      }));

    it('lets a cancel end the fill at once', () =>
      withProxy(NEVER_MS, async (database, proxy) => {
        const run = randomUUID();
        const cancel = new AbortController();
        const reason = new Error('cancelled by the test');
        const rejected = assert.rejects(fill(database, fillRequest(SLOW, { run, signal: cancel.signal })), reason);
        await within('the sleep', freezeOnceAsleep(run, proxy, rejected));
        cancel.abort(reason);
        await within('the cancel', rejected);
        // From a worker that still reaches the server, endFill ends what this one had to leave.
        await withDirect(async (other) => {
          assert.equal(await endFill(other, { pipeline: SLOW.name, key: '2024-02-29', run }), undefined);
        });
        assert.equal(await asleep(run), false);
      }));

    async function freezeOnceAsleep(run: string, proxy: Proxy, filling: Promise<unknown>): Promise<void> {
      let ended = false;
      const end = (): void => void (ended = true);
      filling.then(end, end);
      await until('the query sleeps', async () => ended || (await asleep(run)));
      proxy.restart({ onMessage: () => 'freeze' });
      proxy.freezeAll();
    }
  });

  it('ends what waits for a server that accepts and says nothing, and a cancel ends it at once', async () => {
    const sockets = new Set<Socket>();
    const mute = createServer((socket) => void sockets.add(socket));
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const muteUrl = new URL(test.url);
    muteUrl.port = String((mute.address() as AddressInfo).port);
    const { password } = muteUrl;
    try {
      await Promise.all([
        within('openDatabase', failsAs(openDatabase(muteUrl.href, { fills: 1 }), 'DatabaseUnavailable')).then(
          (failure) => {
            assert.match(failure.message, new RegExp(`${test.name} at 127\\.0\\.0\\.1:${muteUrl.port}`));
            assert.ok(!failure.message.includes(password));
          },
        ),
        withProxy(NEVER_MS, async (database, proxy) => {
          // New connections meet silence: the fill's own, and control connections beyond the one that is open.
          proxy.restart({ onMessage: ({ type }) => (type === 'startup' ? 'freeze' : 'pass') });
          await within('the fill', failsAs(fill(database, fillRequest(FAST)), 'DatabaseUnavailable'));
        }),
        withProxy(NEVER_MS, async (database, proxy) => {
          const silent = new Promise<void>((resolve) => {
            proxy.restart({
              onMessage: ({ type }) => {
                if (type !== 'startup') return 'pass';
                resolve();
                return 'freeze';
              },
            });
          });
          const cancel = new AbortController();
          const reason = new Error('cancelled by the test');
          const rejected = assert.rejects(fill(database, fillRequest(FAST, { signal: cancel.signal })), reason);
          await Promise.race([silent, rejected]);
          cancel.abort(reason);
          await within('the cancel', rejected);
        }),
        withProxy(NEVER_MS, async (database, proxy) => {
          proxy.freezeAll();
          const work = { pipeline: FAST.name, key: '2024-02-29', run: randomUUID() };
          await within('endFill', failsAs(endFill(database, work), 'DatabaseUnavailable'));
        }),
      ]);
    } finally {
      for (const socket of sockets) socket.destroy();
      mute.close();
    }
  });

  for (const request of ['BEGIN', 'SELECT pg_catalog.pg_advisory_xact_lock', 'CREATE TABLE']) {
    it(`ends a migration whose connection stands still at ${request}, and the next one migrates`, async () => {
      const empty = await createTestDatabase({ ledger: false });
      const proxy = await Proxy.before(empty.ownerUrl);
      try {
        const database = await openDatabase(proxy.url(empty.ownerUrl), { fills: 1, watchEveryMs: WATCH_EVERY_MS });
        try {
          proxy.restart({ onMessage: ({ sql }) => (sql.startsWith(request) ? 'freeze' : 'pass') });
          await within('the migration', failsAs(migrate(database), 'DatabaseUnavailable'));
        } finally {
          await proxy.close();
          await database.close();
        }
        const direct = await openDatabase(empty.ownerUrl, { fills: 1 });
        try {
          assert.ok((await within('the next migration', migrate(direct))).length > 0);
        } finally {
          await direct.close();
        }
      } finally {
        await empty.drop();
      }
    });
  }

  it('is found out by keepalive, which every connection asks for', async () => {
    const asked: unknown[][] = [];
    const setKeepAlive = Reflect.get(Socket.prototype, 'setKeepAlive') as (...args: unknown[]) => Socket;
    Socket.prototype.setKeepAlive = function (this: Socket, ...args: unknown[]) {
      asked.push(args);
      return setKeepAlive.apply(this, args);
    };
    try {
      await withDirect((database) => fill(database, fillRequest(FAST)), NEVER_MS);
    } finally {
      Socket.prototype.setKeepAlive = setKeepAlive;
    }
    // One for the control pool, one for the fill.
    assert.deepEqual(asked, [
      [true, 10_000],
      [true, 10_000],
    ]);
  });

  describe('is not suspected where the server only takes its time:', () => {
    afterEach(() => test.sql('DELETE FROM held'));

    it('a query of many looks', async () => {
      await test.sql('INSERT INTO held VALUES (true)');
      await withDirect(async (database) => {
        const filling = outlivesLooks('insert', () => fill(database, fillRequest(WAITS)));
        await filling.looks;
        await test.sql('DELETE FROM held');
        await filling.end;
      });
      assert.equal((await fills(test, 'slow')).length, 1);
    });

    it('a wait of many looks for the window’s lock', async () => {
      await test.sql('INSERT INTO held VALUES (true)');
      await withDirect(async (database) => {
        const first = randomUUID();
        const holding = fill(database, fillRequest(WAITS, { run: first, key: '2024-03-01' }));
        await until('the first sleeps', () => asleep(first));
        const next = sqlPipeline('SELECT :date AS day, 1 AS n', { name: 'slow' });
        const filling = outlivesLooks('lock', () => fill(database, fillRequest(next, { key: '2024-03-01' })));
        await filling.looks;
        await test.sql('DELETE FROM held');
        await Promise.all([filling.end, holding]);
      });
      assert.equal((await fills(test, 'slow', '2024-03-01')).length, 2);
    });

    it('a migration that waits for another, for as many looks as it takes', async () => {
      const empty = await createTestDatabase({ ledger: false });
      try {
        const database = await openDatabase(empty.ownerUrl, { fills: 1, watchEveryMs: PATIENT_MS });
        try {
          await withClient(empty.ownerUrl, async (other) => {
            await other.query('BEGIN');
            await other.query('SELECT pg_advisory_xact_lock($1::int8)', [REGISTRY_LOCK]);
            const migrating = outlivesLooks('begin', () => migrate(database));
            await migrating.looks;
            await other.query('COMMIT');
            assert.ok((await within('the migration', migrating.end)).length > 0);
          });
          assert.equal(await ledgerState(database), 'current');
        } finally {
          await database.close();
        }
      } finally {
        await empty.drop();
      }
    });
  });

  /** Begins work, and tells when so many looks as are many have come in vain since its first statement of a kind was sent. */
  function outlivesLooks<T>(kind: StatementKind, work: () => Promise<T>) {
    let since: number | undefined;
    const hooks: StatementHooks = {
      before: (statement) => {
        if (statement.kind === kind) since ??= 0;
      },
      after: ({ text }) => {
        if (since !== undefined && text.includes(LOOK)) since += 1;
      },
      rewrite: untilLetGo,
    };
    let ended = false;
    const end = withStatements(hooks, work).finally(() => (ended = true));
    end.catch(() => undefined);
    const looks = until('many looks', async () => {
      assert.ok(!ended, 'it ended before');
      return (since ?? 0) >= MANY_LOOKS;
    });
    return { looks, end };
  }

  /** A worker's database behind a proxy, whose pools stand open where they are used once at the start. */
  async function withProxy(
    watchEveryMs: number,
    use: (database: Database, proxy: Proxy) => Promise<unknown>,
  ): Promise<void> {
    const proxy = await Proxy.before(test.url);
    try {
      const database = await openDatabase(proxy.url(test.url), { fills: 1, watchEveryMs });
      try {
        await use(database, proxy);
      } finally {
        await proxy.close();
        await database.close();
      }
    } finally {
      await superuser.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
      );
    }
  }

  async function withDirect(
    use: (database: Database) => Promise<unknown>,
    watchEveryMs: number = PATIENT_MS,
  ): Promise<void> {
    const database = await openDatabase(test.url, { fills: 2, watchEveryMs });
    try {
      await use(database);
    } finally {
      await database.close();
    }
  }

  /** Asked as superuser: from other roles a session's wait is hidden. */
  async function asleep(run: string): Promise<boolean> {
    const { rows } = await superuser.query(
      `SELECT FROM pg_stat_activity WHERE application_name LIKE 'repave ' || $1 || '/%' AND wait_event = 'PgSleep'`,
      [run],
    );
    return rows.length > 0;
  }
});
