import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { atWork, superuserPool } from '../support/at-work.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  fillRequest,
  KEY,
  PATIENT,
  openFills,
  sqlPipeline,
  typescriptPipeline,
  until,
  within,
} from '../support/fill.js';
import { randomFrom, seed } from '../support/seed.js';
import { untilLetGo } from '../support/lock-waits.js';
import { pinned } from '../support/pinned.js';
import { type StatementHooks, withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';

const OTHER_KEY = '2024-01-01';
/** Milliseconds that hundreds of fills, one after the other, may take on a slow machine. */
const LONG_LIMIT_MS = 600_000;

const FAST = sqlPipeline('SELECT :date AS day, g::text AS n FROM generate_series(1, 3) g');
const SLOW = sqlPipeline("SELECT :date AS day, 'slow' AS n FROM pg_sleep(600)");
const ROWS = typescriptPipeline(function* ({ key }) {
  for (const n of ['1', '2', '3']) yield { day: key, n };
});

describe('a cancelled fill', () => {
  let test: TestDatabase;
  let superuser: pg.Pool;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n text NOT NULL)');
    superuser = superuserPool(test);
    database = await openDatabase(test.url, { fills: 2, ...PATIENT });
  });

  after(async () => {
    await database.close();
    await superuser.end();
    await test.drop();
  });

  beforeEach(async () => {
    await test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim');
    await test.sql(`INSERT INTO target VALUES ($1, 'old')`, [KEY]);
  });

  it('leaves old rows or new and nothing of itself at 200 random moments, and harms no other fill of its worker', async function () {
    this.timeout(LONG_LIMIT_MS);
    const random = randomFrom(seed());
    const moments = new Map<string, number>();
    let going = true;
    // A late cancel would hit whoever has the connection next.
    const bystander = (async () => {
      let filled = 0;
      for (; going; filled++) await fill(database, fillRequest(FAST, { key: OTHER_KEY }));
      return filled;
    })();
    try {
      for (let i = 0; i < 200; i++) {
        const old = await seen();
        // A fill sends fewer statements: some cancels come too late.
        const statement = Math.floor(random() * 25);
        const pauseMs = random() * 4 - 1;
        let moment = 'end';
        const work = start(i % 2 === 0 ? FAST : ROWS, {
          before: ({ kind, index }) => {
            if (index !== statement) return;
            moment = kind;
            // Before it is sent, or while it runs.
            if (pauseMs < 0) queueMicrotask(work.cancel);
            else setTimeout(work.cancel, pauseMs);
          },
        });
        const end = await Promise.race([within(`fill ${i}`, work.ended), bystander]);
        if (end === 'cancelled') {
          moments.set(moment, (moments.get(moment) ?? 0) + 1);
          assert.deepEqual(await atWork(superuser, work.run), [], `fill ${i}, cancelled at ${moment}`);
        }
        const now = await seen();
        const where = `fill ${i}, ${String(end)} at ${moment}`;
        if (now.run === work.run) assert.equal(now.rows, '1,2,3', where);
        else assert.deepEqual(now, old, where);
        assert.ok(end === 'cancelled' || now.run === work.run, where);
      }
    } finally {
      going = false;
      await bystander;
    }
    const cancelled = [...moments.values()].reduce((sum, n) => sum + n, 0);
    console.log(`      ${cancelled} cancelled: ${[...moments].map(([kind, n]) => `${n} at ${kind}`).join(', ')}`);
    assert.ok(cancelled > 50, `only ${cancelled} were cancelled before they ended`);
    assert.ok((await bystander) > 50, 'few other fills ran beside them');
  });

  it('never begins where it was cancelled before', async () => {
    const signal = AbortSignal.abort(new Error('cancelled by the test'));
    await assert.rejects(fill(database, fillRequest(FAST, { signal })), /cancelled by the test/);
    assert.deepEqual(await test.sql('SELECT FROM repave.claim'), []);
  });

  it('ends while its query runs', () => cancelledWhen(SLOW, asleep));

  it('ends while it waits for the window’s lock', async () => {
    const holder = start(SLOW);
    await until('the holder sleeps', () => asleep(holder.run));
    await cancelledWhen(FAST, waitsForLock, { rewrite: untilLetGo });
    assert.equal(await asleep(holder.run), true, 'the holder was ended too');
    holder.cancel();
    assert.equal(await within('the holder', holder.ended), 'cancelled');
  });

  it('ends while it waits for a lock on the table', async () => {
    await withClient(test.ownerUrl, async (owner) => {
      await owner.query('BEGIN');
      await owner.query('LOCK TABLE target IN ACCESS EXCLUSIVE MODE');
      await assertCancelled(FAST, waitsForLock);
      await owner.query('COMMIT');
    });
    await oldRowsStand();
  });

  it('ends while it waits for its claim, which an older attempt holds', async () => {
    await withClient(test.ownerUrl, async (owner) => {
      const run = randomUUID();
      await owner.query(
        `INSERT INTO repave.claim (pipeline, key, run, scheduled_at, attempt, deadline) VALUES ('target', $1, $2, 0, 0, now())`,
        [KEY, run],
      );
      await owner.query('BEGIN');
      await owner.query('SELECT FROM repave.claim WHERE run = $1 FOR UPDATE', [run]);
      // A claim waits only shortly, and as often as it may: from here on, until the row is let go.
      let claims = false;
      const before: StatementHooks['before'] = ({ kind }) => void (claims ||= kind === 'claim');
      await assertCancelled(FAST, () => Promise.resolve(claims), { before }, run);
      await owner.query('ROLLBACK');
    });
    await oldRowsStand();
  });

  it('ends in a COPY that waits for rows', async () => {
    let copying = (): void => undefined;
    const copies = new Promise<void>((resolve) => (copying = resolve));
    const hooks: StatementHooks = {
      copying: () => {
        copying();
        return new Promise(() => undefined);
      },
    };
    await cancelledWhen(ROWS, () => copies.then(() => true), hooks);
  });

  it('ends while its source stalls, with no session open', async () => {
    let stalls = false;
    const stalled = typescriptPipeline(async function* ({ key }) {
      yield { day: key, n: '1' };
      stalls = true;
      await new Promise(() => undefined);
    });
    await cancelledWhen(stalled, async (run) => stalls && (await openFills(test, run)) === 0);
  });

  it('ends while the pool is full, whether it has a connection or waits for one', async () => {
    const busy = [start(SLOW, {}, { key: '2024-01-02' }), start(SLOW, {}, { key: '2024-01-03' })];
    for (const { run } of busy) await until('the pool is full', () => asleep(run));
    const waiting = start(FAST);
    // A macrotask later it is in the pool's queue.
    await new Promise((resolve) => setImmediate(resolve));
    waiting.cancel();
    assert.equal(await within('the cancel of one that waits', waiting.ended), 'cancelled');
    for (const { run, cancel, ended } of busy) {
      cancel();
      assert.equal(await within('the cancel of one that runs', ended), 'cancelled');
      assert.deepEqual(await atWork(superuser, run), []);
    }
    // The place that nobody waits for any more is free again.
    await Promise.all([OTHER_KEY, KEY].map((key) => fill(database, fillRequest(FAST, { key }))));
  });

  it('is TimedOut, and as clean, where its own time is up', async () => {
    const run = randomUUID();
    const ended = fill(database, fillRequest(SLOW, { run, timeLeftMs: 500 }));
    await assert.rejects(within('the fill', ended), { type: 'TimedOut' });
    assert.deepEqual(await atWork(superuser, run), []);
    await oldRowsStand();
  });

  it('would leave its query running, were its connection only closed', async () => {
    // Nor does the server look, after 5 s, whether the client is still there.
    const unchecked: StatementHooks = { rewrite: pinned('client_connection_check_interval', () => '0') };
    const work = start(SLOW, unchecked);
    await until('its query runs', () => asleep(work.run));
    const onlyClose: StatementHooks = {
      rewrite: ({ kind }) => (kind === 'end-backends' ? { text: 'SELECT WHERE false', values: [] } : undefined),
    };
    await withStatements(onlyClose, async () => {
      work.cancel();
      assert.equal(await within('the cancel', work.ended), 'cancelled');
    });
    const [left] = await atWork(superuser, work.run);
    assert.equal(left?.state, 'active');
    await superuser.query('SELECT pg_terminate_backend($1)', [left.pid]);
  });

  function start(pipeline: Pipeline, hooks: StatementHooks = {}, { key = KEY, run = randomUUID() } = {}) {
    const controller = new AbortController();
    const reason = new Error('cancelled by the test');
    const ended = withStatements(hooks, () =>
      fill(database, fillRequest(pipeline, { run, key, signal: controller.signal })),
    ).then(
      () => 'filled' as const,
      (error: unknown) => {
        if (error !== reason) throw error;
        return 'cancelled' as const;
      },
    );
    return { run, ended, cancel: () => controller.abort(reason) };
  }

  async function cancelledWhen(
    pipeline: Pipeline,
    ready: (run: string) => Promise<boolean>,
    hooks: StatementHooks = {},
  ): Promise<void> {
    await assertCancelled(pipeline, ready, hooks);
    await oldRowsStand();
    // And nothing of it is in another run's way.
    if (pipeline !== FAST) await within('another run', fill(database, fillRequest(FAST)));
  }

  async function assertCancelled(
    pipeline: Pipeline,
    ready: (run: string) => Promise<boolean>,
    hooks: StatementHooks = {},
    run = randomUUID(),
  ): Promise<void> {
    const work = start(pipeline, hooks, { run });
    await Promise.race([until('the moment to cancel', () => ready(run)), work.ended]);
    work.cancel();
    assert.equal(await within('the cancel', work.ended), 'cancelled');
    assert.deepEqual(await atWork(superuser, run), []);
    assert.equal(await openFills(test, run), 0);
  }

  async function oldRowsStand(): Promise<void> {
    assert.deepEqual(await seen(), { rows: 'old', run: null });
  }

  /** Rows of the window, and the run that the ledger says they are of, as one reader's statement sees them. */
  async function seen(): Promise<{ rows: string | null; run: string | null }> {
    const [row] = await test.sql<{ rows: string | null; run: string | null }>(
      `SELECT (SELECT string_agg(n, ',' ORDER BY n) FROM target WHERE day = $1) AS rows,
              (SELECT run FROM repave.partition WHERE key = $2) AS run`,
      [KEY, KEY],
    );
    return row ?? { rows: null, run: null };
  }

  async function asleep(run: string): Promise<boolean> {
    return waits(run, `wait_event = 'PgSleep'`);
  }

  async function waitsForLock(run: string): Promise<boolean> {
    return waits(run, `wait_event_type = 'Lock'`);
  }

  /** Asked as superuser: from other roles a session's wait is hidden. */
  async function waits(run: string, condition: string): Promise<boolean> {
    const { rows } = await superuser.query(
      `SELECT FROM pg_stat_activity WHERE application_name LIKE 'repave ' || $1 || '/%' AND ${condition}`,
      [run],
    );
    return rows.length > 0;
  }
});
