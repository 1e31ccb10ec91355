import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { windowOf } from '../../src/calendar/window.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { type TrialRequest, tryFill } from '../../src/warehouse/try-fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, typescriptPipeline, until, withWorker } from '../support/fill.js';
import { lockWaits, untilLetGo } from '../support/lock-waits.js';
import { withStatements } from '../support/statements.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const CHECKS = [
  { kind: 'rows', min: 1 },
  { kind: 'unique', columns: ['n'] },
] as const;
const query = sqlPipeline('SELECT :date::date AS day, k AS n FROM generate_series(1, 30) k', { checks: CHECKS });
const code = typescriptPipeline(
  function* ({ key }) {
    for (let n = 1; n <= 30; n++) yield { day: key, n };
  },
  { checks: CHECKS },
);

function trial(pipeline: Pipeline, options: Partial<TrialRequest> = {}): TrialRequest {
  const window = windowOf(pipeline.partition, KEY);
  return { pipeline, window, rows: 3, signal: new AbortController().signal, ...options };
}

describe('trying a fill', () => {
  let test: TestDatabase;
  let spoolDir: string;

  before(async () => {
    test = await createTestDatabase();
    spoolDir = mkdtempSync(join(tmpdir(), 'repave-trial-'));
    await test.sql('CREATE TABLE target (day date NOT NULL, n int, note text DEFAULT $$new$$)');
  });
  after(async () => {
    await test.drop();
    rmSync(spoolDir, { recursive: true });
  });
  beforeEach(() =>
    test.sql(`TRUNCATE target; INSERT INTO target VALUES ('${KEY}', 100, 'old'), ('2024-03-01', 100, 'other')`),
  );
  afterEach(() => assert.deepEqual(readdirSync(spoolDir), [], 'no spool file is left'));

  const asWorker = <T>(use: (database: Database) => Promise<T>): Promise<T> => withWorker(test, use, { spoolDir });
  /** All that a trial could have left. */
  const state = () =>
    // The owner does not see what the worker's role does.
    asSuperuser(
      test,
      `SELECT (SELECT json_agg(json_build_array(xmin::text, ctid::text, t) ORDER BY ctid) FROM target t) AS target,
                     (SELECT count(*)::int FROM repave.fill) AS fills, (SELECT count(*)::int FROM repave.partition) AS partitions,
                     (SELECT count(*)::int FROM repave.claim) AS claims, (SELECT count(*)::int FROM repave.failure) AS failures,
                     (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'
                                                                     AND application_name LIKE 'repave %/try %') AS open`,
    );
  const changingNothing = async <T>(work: () => Promise<T>): Promise<T> => {
    const before = await state();
    const result = await work();
    assert.deepEqual(await state(), before);
    return result;
  };

  for (const [kind, pipeline] of [
    ['a query', query],
    ['code, spooled', code],
    ['code, straight in', { ...code, stage: false }],
    ['a query that may be skipped', { ...query, skipUnchanged: true }],
  ] as const) {
    it(`does all of it by ${kind}, says what came of it, and leaves nothing`, () =>
      asWorker(async (database) => {
        const tried = await changingNothing(() => tryFill(database, trial(pipeline)));
        assert.deepEqual(
          [tried.deleted, tried.inserted, tried.refused, tried.target],
          [1, 30, undefined, 'public.target'],
        );
        assert.deepEqual(
          tried.checks.map(({ check, passed, seen }) => [check, passed, seen]),
          [
            ['rows (min 1)', true, '30 rows'],
            ['unique (n)', true, 'no repetition'],
          ],
        );
        assert.deepEqual(tried.columns, ['day', 'n', 'note']);
        assert.deepEqual(tried.rows, [
          [KEY, '1', 'new'],
          [KEY, '2', 'new'],
          [KEY, '3', 'new'],
        ]);
        const steps = tried.steps.map(({ step }) => step);
        for (const step of ['lock', 'delete', 'insert', 'check'] as const) assert.ok(steps.includes(step), step);
        assert.equal(steps.includes('spool'), kind === 'code, spooled');
        assert.ok(tried.steps.every(({ seconds }) => seconds >= 0));
      }));
  }

  it('says what a fill then does', () =>
    asWorker(async (database) => {
      const tried = await tryFill(database, trial(query));
      const filled = await fill(database, fillRequest(query));
      assert.deepEqual([tried.deleted, tried.inserted], [filled.deleted, filled.rows]);
      await test.sql('TRUNCATE repave.fill, repave.partition');
    }));

  it('shows every check that fails, and the rows that fail it', () =>
    asWorker(async (database) => {
      const twice = sqlPipeline('SELECT :date::date AS day, 1 AS n FROM generate_series(1, 2)', {
        checks: [
          { kind: 'rows', min: 5 },
          { kind: 'unique', columns: ['n'] },
          { kind: 'not_null', columns: ['n'] },
        ],
      });
      const tried = await changingNothing(() => tryFill(database, trial(twice)));
      assert.deepEqual(
        tried.checks.map(({ passed }) => passed),
        [false, false, true],
      );
      assert.equal(tried.refused?.type, 'CheckFailed');
      assert.match(tried.refused?.message ?? '', /rows \(min 5\): 2 rows; unique \(n\): 1 value more than once/);
      assert.equal(tried.rows.length, 2);
    }));

  it('warns of a window that it would empty, and refuses where that is not allowed', () =>
    asWorker(async (database) => {
      const none = sqlPipeline('SELECT :date::date AS day, 1 AS n WHERE false');
      const tried = await changingNothing(() => tryFill(database, trial(none)));
      assert.deepEqual([tried.deleted, tried.inserted, tried.warnings, tried.refused], [1, 0, ['emptied'], undefined]);
      const refused = await changingNothing(() => tryFill(database, trial({ ...none, allowEmpty: false })));
      assert.match(refused.refused?.message ?? '', /would empty a window that holds 1 row/);
    }));

  it('fails as a fill would on what is wrong before the checks', () =>
    asWorker(async (database) => {
      const outside = sqlPipeline(`SELECT :date::date + 1 AS day, 1 AS n`);
      const unknown = sqlPipeline('SELECT :date::date AS day, 1 AS none');
      await changingNothing(async () => {
        await failsAs(tryFill(database, trial(outside)), 'RowsOutsideWindow');
        await failsAs(tryFill(database, trial(unknown)), 'SchemaMismatch');
        const thrown = typescriptPipeline(() => {
          throw new Error('no');
        });
        await failsAs(tryFill(database, trial(thrown)), 'SourceFailed');
      });
    }));

  it('asks `ready` first', () =>
    asWorker(async (database) => {
      await changingNothing(() => failsAs(tryFill(database, trial({ ...code, ready: () => false })), 'SourceNotReady'));
      assert.equal((await tryFill(database, trial({ ...code, ready: () => true }))).inserted, 30);
    }));

  it('reads long values cut, NULL as NULL, and no row where none is asked for', () =>
    asWorker(async (database) => {
      const long = sqlPipeline(`SELECT :date::date AS day, NULL::int AS n, repeat('é', 20000) AS note`);
      const [row] = (await tryFill(database, trial(long))).rows;
      assert.deepEqual([row?.[1], row?.[2]?.length], [null, 10_000]);
      assert.deepEqual((await tryFill(database, trial(long, { rows: 0 }))).rows, []);
    }));

  it('needs no ledger', async () => {
    const bare = await createTestDatabase({ ledger: false });
    try {
      await bare.sql('CREATE TABLE target (day date NOT NULL, n int, note text)');
      const changing = { ...query, checks: [...CHECKS, { kind: 'change', maxPercent: 10 }] as const };
      for (const pipeline of [query, code, changing]) {
        assert.equal((await withWorker(bare, (database) => tryFill(database, trial(pipeline)))).inserted, 30);
      }
      assert.deepEqual(await bare.sql('SELECT FROM target'), []);
    } finally {
      await bare.drop();
    }
  });

  it('makes the part of the table that is not there, and takes it away again', async () => {
    await test.sql(`CREATE TABLE parted (day date NOT NULL, n int) PARTITION BY RANGE (day)`);
    const parted = { ...query, name: 'parted', target: { table: 'parted' } };
    const owner = await openDatabase(test.ownerUrl, { fills: 2 });
    try {
      await failsAs(tryFill(owner, trial(parted)), 'DataError');
      assert.equal((await tryFill(owner, trial({ ...parted, create: true }))).inserted, 30);
      assert.deepEqual(await test.sql(`SELECT FROM pg_inherits WHERE inhparent = 'parted'::regclass`), []);
    } finally {
      await owner.close();
    }
    const failure = await asWorker((database) =>
      failsAs(tryFill(database, trial({ ...parted, create: true })), 'PermissionDenied'),
    );
    assert.match(failure.message, /GRANT owner TO role/);
  });

  it('keeps nobody from a default part, which takes the rows in place of the part that is not there', async () => {
    await test.sql(`CREATE TABLE beside (day date NOT NULL, n int) PARTITION BY RANGE (day);
      CREATE TABLE rest PARTITION OF beside DEFAULT; INSERT INTO beside VALUES ('2024-03-05', 8)`);
    const readers = (): Promise<number | null> =>
      withClient(test.ownerUrl, async (reader) => {
        await reader.query(`SET lock_timeout = '5s'`);
        return (await reader.query('SELECT FROM rest')).rowCount;
      });
    const pipeline = typescriptPipeline(
      async function* ({ key }) {
        yield { day: key, n: await readers() };
      },
      { name: 'beside', target: { table: 'beside' }, stage: false, create: true },
    );
    const owner = await openDatabase(test.ownerUrl, { fills: 2 });
    try {
      const { inserted, rows } = await tryFill(owner, trial(pipeline));
      assert.deepEqual([inserted, rows], [1, [[KEY, '1']]]);
      assert.deepEqual(await test.sql('SELECT n FROM rest'), [{ n: 8 }]);
      await test.sql(`INSERT INTO beside VALUES ('${KEY}', 7)`);
      const failure = await failsAs(tryFill(owner, trial(pipeline)), 'SchemaMismatch');
      assert.match(failure.message, /default part of the table holds rows of its time/);
    } finally {
      await owner.close();
    }
  });

  describe('beside a fill of the same window', () => {
    /** A fill that stands at its DELETE, with its locks, until `meanwhile` has ended. */
    const whileFilling = (
      database: Database,
      meanwhile: (letGo: () => Promise<unknown>) => Promise<void>,
    ): Promise<void> =>
      withClient(test.ownerUrl, async (blocker) => {
        await blocker.query('BEGIN; LOCK TABLE target IN SHARE MODE');
        const running = fill(database, fillRequest(query));
        await until('the fill waits for the table', async () => {
          const [row] = await test.sql<{ waits: boolean }>(
            `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'target'::regclass AND NOT granted) AS waits`,
          );
          return row?.waits;
        });
        await meanwhile(() => blocker.query('COMMIT'));
        await blocker.query('COMMIT');
        assert.equal((await running).rows, 30);
        await test.sql('TRUNCATE repave.fill, repave.partition');
      });
    const waitsForTheWindow = async (): Promise<boolean | undefined> => {
      const [row] = await test.sql<{ waits: boolean }>(
        `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                         WHERE a.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted
                           AND a.application_name LIKE 'repave %/try %') AS waits`,
      );
      return row?.waits;
    };

    it('waits for it, and sees what it has committed', () =>
      asWorker((database) =>
        whileFilling(database, async (letGo) => {
          const trying = withStatements({ rewrite: untilLetGo }, () => tryFill(database, trial(query)));
          await until('the trial waits', waitsForTheWindow);
          await letGo();
          assert.equal((await trying).deleted, 30, 'the fill’s rows, not those before it');
        }),
      ));

    it('says who holds the window where that does not end', () =>
      asWorker((database) =>
        whileFilling(database, async () => {
          const failure = await failsAs(
            withStatements({ rewrite: lockWaits(300) }, () => tryFill(database, trial(query))),
            'Conflict',
          );
          assert.match(failure.message, /is held by run \S+ of \S+ \S+ \(pid \d+, since \S+Z\)\. Try again/);
        }),
      ));
  });

  it('is no rival of a neighbour’s fill', () =>
    asWorker(async (database) => {
      await withClient(test.ownerUrl, async (blocker) => {
        await blocker.query(`BEGIN; SELECT FROM target WHERE day = '${KEY}' FOR UPDATE`);
        const trying = tryFill(database, trial(query));
        await until('the trial is at its DELETE', async () => {
          const [row] = await asSuperuser<{ waits: boolean }>(
            test,
            `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'repave %/try %'
                                                           AND wait_event_type = 'Lock') AS waits`,
          );
          return row?.waits;
        });
        assert.equal((await fill(database, fillRequest(query, { key: '2024-03-01' }))).rows, 30);
        await blocker.query('COMMIT');
        assert.equal((await trying).inserted, 30);
      });
      await test.sql('TRUNCATE repave.fill, repave.partition');
    }));

  for (const [what, pipeline] of [
    ['query', sqlPipeline('SELECT :date::date AS day, 1 AS n FROM pg_sleep(600)')],
    [
      'code',
      typescriptPipeline(async function* () {
        await new Promise((resolve) => setTimeout(resolve, 600_000).unref());
        yield { day: KEY };
      }),
    ],
  ] as const) {
    it(`ends its ${what} and rolls back once it is interrupted`, () =>
      asWorker((database) =>
        changingNothing(async () => {
          const controller = new AbortController();
          let spooling = false;
          const rows = pipeline.kind === 'typescript' ? pipeline.rows : undefined;
          const watched =
            pipeline.kind === 'typescript' && rows
              ? { ...pipeline, rows: (context: Parameters<typeof rows>[0]) => ((spooling = true), rows(context)) }
              : pipeline;
          const trying = tryFill(database, trial(watched, { signal: controller.signal }));
          await until('it runs', async () => {
            const [row] = await asSuperuser<{ sleeps: boolean }>(
              test,
              `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep') AS sleeps`,
            );
            return spooling || row?.sleeps;
          });
          const reason = new Error('interrupted');
          controller.abort(reason);
          await assert.rejects(trying, reason);
        }),
      ));
  }

  it('ends with TimedOut once the pipeline’s own time is up', () =>
    asWorker((database) =>
      changingNothing(async () => {
        const slow = sqlPipeline('SELECT :date::date AS day, 1 AS n FROM pg_sleep(600)', { timeoutMs: 300 });
        const failure = await failsAs(tryFill(database, trial(slow)), 'TimedOut');
        assert.match(failure.message, /took longer than 300 ms/);
      }),
    ));
});
