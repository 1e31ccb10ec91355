import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import type { FillOutcome } from '../../src/warehouse/fill-request.js';
import { atWork, superuserPool } from '../support/at-work.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fills, KEY, type RequestOptions, settled, until, within } from '../support/fill.js';
import { lockWaits, untilLetGo } from '../support/lock-waits.js';
import { looksAmong } from '../support/looks.js';
import { type ProxiedConnection, Proxy } from '../support/proxy.js';
import { relay, relayPipeline } from '../support/source-database.js';
import { type StatementHooks, withStatements } from '../support/statements.js';

/** Waits, working, for as long as a test holds the lock; a COPY's snapshot would not see a table's row go. */
const HELD = `CREATE FUNCTION held() RETURNS bool LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    WHILE NOT pg_try_advisory_xact_lock_shared(7) LOOP PERFORM pg_sleep(0.02); END LOOP;
    RETURN true;
  END $$`;
/** Rows of 20 kB: more than sockets and buffers hold, on both sides of the place where the source is held. */
const HALF = 1_500;
const rowsAround = (behind: number) =>
  relayPipeline(
    `SELECT :date AS day, g AS n, repeat('x', 20000) AS note FROM generate_series(1, ${HALF + behind}) g WHERE g <> ${HALF} OR held()`,
  );
const FEW_BEHIND = rowsAround(3);
const MANY_BEHIND = rowsAround(HALF);
/** Milliseconds between two looks at a session: four that a slow machine does not answer would end it as well. */
const WATCH_EVERY_MS = 2_000;
/** Looks at a session after which it would have been given up. */
const LOOKS = 4;

describe('where rows come from another PostgreSQL, and', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let target: Database;
  let source: Database;
  let proxy: Proxy;
  let targetProxy: Proxy;
  let superuser: { test: pg.Pool; remote: pg.Pool };

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    [proxy, targetProxy] = await Promise.all([Proxy.before(remote.url), Proxy.before(test.url)]);
    [target, source] = await Promise.all([
      openDatabase(targetProxy.url(test.url), { fills: 4, watchEveryMs: WATCH_EVERY_MS }),
      openDatabase(proxy.url(remote.url), { fills: 4, watchEveryMs: WATCH_EVERY_MS }),
    ]);
    superuser = { test: superuserPool(test), remote: superuserPool(remote) };
    await remote.sql(HELD);
  });
  beforeEach(async () => {
    proxy.restart({});
    targetProxy.restart({});
    await emptyDatabase(test);
    await test.sql(
      `CREATE TABLE target (day date NOT NULL, n bigint, note text); INSERT INTO target VALUES ('${KEY}', -1); ${HELD}`,
    );
  });
  after(async () => {
    await Promise.all([target.close(), source.close()]);
    await Promise.all([proxy.close(), targetProxy.close(), superuser.test.end(), superuser.remote.end()]);
    await Promise.all([test.drop(), remote.drop()]);
  });

  /** Makes what calls `held()` in that database wait; returns what lets it go. */
  async function hold(which: 'test' | 'remote'): Promise<() => Promise<void>> {
    const client = await superuser[which].connect();
    await client.query('SELECT pg_advisory_lock(7)');
    return async () => {
      await client.query('SELECT pg_advisory_unlock(7)');
      client.release();
    };
  }

  /** The session of a run that waits in `held()`. */
  async function heldPid(which: 'test' | 'remote', run: string): Promise<number> {
    return until('a fill that is held', async () => {
      const { rows } = await superuser[which].query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'
            AND starts_with(application_name, 'repave ' || $1)`,
        [run],
      );
      return rows[0]?.pid;
    });
  }

  const oldRows = async (): Promise<void> =>
    assert.deepEqual(await test.sql('SELECT day::text, n::int FROM target'), [{ day: KEY, n: -1 }]);
  const nothingRuns = async (run: string): Promise<void> => {
    assert.deepEqual(await atWork(superuser.remote, run), [], 'on the source');
    assert.deepEqual(await atWork(superuser.test, run), [], 'on the target');
  };
  const sourceFree = (run: string): Promise<unknown> =>
    until('the source to be free', async () => (await atWork(superuser.remote, run)).length === 0);
  const connectionOf = (through: Proxy, pid: number): ProxiedConnection =>
    through.connections.find((connection) => connection.pid === pid) ?? assert.fail('no such connection');

  /** A fill that is held in the middle of its rows while `meanwhile` does what it does. */
  async function heldFill(
    pipeline: typeof FEW_BEHIND,
    meanwhile: (pid: number, letGo: () => Promise<void>, run: string) => Promise<void>,
    options: RequestOptions = {},
  ): Promise<{ readonly end: Promise<FillOutcome>; readonly run: string }> {
    const run = randomUUID();
    const letGo = await hold('remote');
    let released = false;
    const once = async (): Promise<void> => {
      if (!released) await letGo();
      released = true;
    };
    const end = relay(target, source, pipeline, { run, ...options });
    end.catch(() => undefined);
    try {
      const pid = await Promise.race([heldPid('remote', run), end.then(() => assert.fail('it was not held'))]);
      await meanwhile(pid, once, run);
      const ended = within('the fill', end);
      ended.catch(() => undefined);
      return { end: ended, run };
    } finally {
      await once();
    }
  }

  describe('the source is lost, it is tried again:', () => {
    /** Ends as the world's fault, said of the source. */
    async function lost(work: Promise<unknown>): Promise<void> {
      const failure = await failsAs(within('the fill', work), 'DatabaseUnavailable');
      assert.match(failure.message, /^On the source of target \(test_\w+ at 127\.0\.0\.1:\d+\): /);
      assert.equal(failure.final, false);
      await oldRows();
    }

    it('cut off at each message in turn', async () => {
      const run = randomUUID();
      let cuts = 0;
      for (let at = 1; ; at++) {
        let cut = false;
        let number = 0;
        const isLook = looksAmong();
        proxy.restart({
          onMessage: (message) => {
            // Nor is it of the fill that the pool says goodbye to a connection which was idle for long.
            if (isLook(message) || message.type === 'X' || ++number !== at || cut) return 'pass';
            cut = true;
            return 'cut';
          },
        });
        const end = await settled(within('the fill', relay(target, source, FEW_BEHIND, { run, attempt: at })));
        if (!end.failure) break;
        await lost(Promise.reject(end.failure));
        cuts += 1;
      }
      assert.ok(cuts > 10, `${cuts} cuts`);
      assert.deepEqual(
        (await fills(test)).map(({ inserted }) => inserted),
        [HALF + 3],
      );
    });

    it('cut off between two rows', async () => {
      const { end } = await heldFill(FEW_BEHIND, async (pid) => connectionOf(proxy, pid).cut());
      await lost(end);
    });

    it('its backend ended', async () => {
      const { end } = await heldFill(FEW_BEHIND, async (pid) => {
        await superuser.remote.query('SELECT pg_terminate_backend($1)', [pid]);
      });
      await lost(end);
    });

    it('its connection stalls, and no row is left to send', async () => {
      const { end } = await heldFill(FEW_BEHIND, async (pid) => connectionOf(proxy, pid).freeze());
      await lost(end);
    });

    it('its connection stalls, and it can send no more', async () => {
      const { end } = await heldFill(MANY_BEHIND, async (pid) => {
        const connection = connectionOf(proxy, pid);
        connection.freeze();
        connection.server.pause();
      });
      await lost(end);
    });

    it('all of its network stalls', async () => {
      const { end } = await heldFill(FEW_BEHIND, async () => proxy.freezeAll());
      await lost(end);
      for (const connection of proxy.connections) connection.cut();
    });

    it('never there', async () => {
      const gone = await Proxy.before(remote.url);
      const away = await openDatabase(gone.url(remote.url), { fills: 1 });
      await gone.close();
      await lost(relay(target, away, FEW_BEHIND));
      await away.close();
    });
  });

  describe('one end is slow, it is waited for:', () => {
    /** Resolves once the sessions were looked at so often that one that stands would have been given up. */
    async function looks(...ways: readonly Proxy[]): Promise<void> {
      const enough = ways.map((through) => {
        let seen = 0;
        through.restart({ onMessage: ({ sql }) => ((seen += Number(sql.includes('pg_stat_activity'))), 'pass') });
        return until('looks at the session', async () => seen >= LOOKS);
      });
      await Promise.all(enough);
    }

    it('the source computes for long between two rows', async () => {
      const { end } = await heldFill(FEW_BEHIND, () => looks(proxy, targetProxy));
      assert.equal((await end).rows, HALF + 3);
    });

    it('the target takes long to take rows', async () => {
      await test.sql(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM held(); RETURN NEW; END';
        CREATE TRIGGER wait BEFORE INSERT ON target FOR EACH ROW WHEN (NEW.n = 10) EXECUTE FUNCTION wait()`);
      const run = randomUUID();
      const letGo = await hold('test');
      // A proxy would take what the target does not.
      const direct = await openDatabase(test.url, { fills: 1, watchEveryMs: WATCH_EVERY_MS });
      const end = relay(direct, source, MANY_BEHIND, { run });
      try {
        await Promise.race([
          heldPid('test', run).then(() => looks(proxy)),
          end.then(() => assert.fail('it was not held')),
        ]);
      } finally {
        await letGo();
      }
      assert.equal((await within('the fill', end)).rows, 2 * HALF);
      await direct.close();
    });
  });

  describe('it ends otherwise, no query of it is left on either:', () => {
    it('the target’s connection stalls', async () => {
      const { end, run } = await heldFill(MANY_BEHIND, async (_, letGo, running) => {
        const [open] = await atWork(superuser.test, running);
        connectionOf(targetProxy, open?.pid ?? 0).freeze();
        await letGo();
      });
      const failure = await failsAs(end, 'DatabaseUnavailable');
      assert.doesNotMatch(failure.message, /source/);
      assert.deepEqual(await atWork(superuser.remote, run), []);
      for (const connection of targetProxy.connections) connection.cut();
      await until('the target to roll back', async () => (await atWork(superuser.test, run)).length === 0);
      await oldRows();
    });

    it('the target’s backend is ended', async () => {
      const { end, run } = await heldFill(FEW_BEHIND, async (_pid, _letGo, running) => {
        const [open] = await atWork(superuser.test, running);
        await superuser.test.query('SELECT pg_terminate_backend($1)', [open?.pid]);
        // Still held: what ends it is the target's end.
        await sourceFree(running);
      });
      const failure = await failsAs(end, 'DatabaseUnavailable');
      assert.doesNotMatch(failure.message, /source/);
      await nothingRuns(run);
      await oldRows();
    });

    it('a newer attempt of its run begins, which is not kept waiting', async () => {
      const { end, run } = await heldFill(FEW_BEHIND, async (_pid, _letGo, running) => {
        const newer = relayPipeline('SELECT :date AS day, 5 AS n');
        const filling = withStatements({ rewrite: untilLetGo }, () =>
          relay(target, source, newer, { run: running, attempt: 2 }),
        );
        assert.equal((await within('it', filling)).rows, 1);
        // Still held: what ends it is the newer one.
        await sourceFree(running);
      });
      await failsAs(end, 'DatabaseUnavailable');
      await nothingRuns(run);
      assert.deepEqual(await test.sql('SELECT n::int FROM target'), [{ n: 5 }]);
    });

    it('it is cancelled while the source computes', async () => {
      const cancel = new AbortController();
      const reason = new Error('cancelled');
      const { end, run } = await heldFill(
        FEW_BEHIND,
        async (_pid, _letGo, running) => {
          cancel.abort(reason);
          // Still held: what ends it is the cancel.
          await sourceFree(running);
        },
        { signal: cancel.signal },
      );
      await assert.rejects(end, reason);
      await nothingRuns(run);
      await oldRows();
    });

    it('it is cancelled while its rows stream', async () => {
      for (const step of ['describe', 'delete', 'copy', 'count'] as const) {
        const cancel = new AbortController();
        const reason = new Error('cancelled');
        const run = randomUUID();
        const hooks: StatementHooks = {
          before: ({ kind, text }) => {
            if (kind === step || (step === 'copy' && text.endsWith('(FORMAT binary)')))
              setImmediate(() => cancel.abort(reason));
          },
        };
        const end = withStatements(hooks, () => relay(target, source, MANY_BEHIND, { run, signal: cancel.signal }));
        await assert.rejects(within(`the fill cancelled at ${step}`, end), reason);
        await nothingRuns(run);
        await oldRows();
      }
    });

    it('it is cancelled while the source waits for a lock', async () => {
      await remote.sql('CREATE TABLE locked (day date, n int)');
      const locker = await superuser.remote.connect();
      await locker.query('BEGIN; LOCK TABLE locked');
      try {
        const cancel = new AbortController();
        const reason = new Error('cancelled');
        const run = randomUUID();
        // So that nothing but the cancel ends the wait.
        const end = withStatements({ rewrite: lockWaits(600_000) }, () =>
          relay(target, source, relayPipeline('SELECT day, n FROM locked'), { run, signal: cancel.signal }),
        );
        end.catch(() => undefined);
        await until('the source to wait', async () =>
          (await atWork(superuser.remote, run)).some(({ query }) => query.includes('FROM locked')),
        );
        cancel.abort(reason);
        await assert.rejects(within('the fill', end), reason);
        await nothingRuns(run);
      } finally {
        await locker.query('ROLLBACK');
        locker.release();
      }
    });

    it('its time is over', async () => {
      // On a slow machine it may be over before the fill is held: then it is given more.
      for (let [held, timeLeftMs] = [false, 1_000]; !held; timeLeftMs *= 3) {
        const filling = heldFill(
          FEW_BEHIND,
          async (_pid, _letGo, running) => {
            held = true;
            await sourceFree(running);
          },
          { timeLeftMs },
        );
        const { value } = await settled(filling);
        if (!value) continue;
        await failsAs(value.end, 'TimedOut');
        await nothingRuns(value.run);
        await oldRows();
      }
    });
  });
});
