import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { ON_BUSY } from '../../src/contract.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillRequest } from '../../src/warehouse/fill-request.js';
import { holderOf } from '../../src/warehouse/holder.js';
import { gridLock, type WindowLock, windowLock } from '../../src/warehouse/lock.js';
import { tryFill } from '../../src/warehouse/try-fill.js';
import { superuserPool } from '../support/at-work.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  failsAs,
  fillRequest,
  fills,
  KEY,
  NO_LOOKS_MS,
  sqlPipeline,
  typescriptPipeline,
  until,
  within,
} from '../support/fill.js';
import { lockWaits, untilLetGo } from '../support/lock-waits.js';
import { type StatementHooks, unhooked, withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';
import { SteeredFill, thawAll } from './steered-fill.js';

/** What nobody may hear of a holder. */
const SECRET = 'ssn-123-45-6789';

describe('a window that something else holds', () => {
  const pipeline = sqlPipeline(`SELECT :date AS day, 'new' AS value`);
  let test: TestDatabase;
  let worker: Database;
  let root: number;
  let lock: WindowLock;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, value text NOT NULL)');
    worker = await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS });
    const [row] = await test.sql<{ oid: number }>(`SELECT 'target'::regclass::oid::int AS oid`);
    root = row?.oid ?? 0;
    lock = windowLock({ root }, fillRequest(pipeline).window);
  });
  beforeEach(async () => {
    await test.sql(
      `TRUNCATE target, repave.fill, repave.partition, repave.claim; INSERT INTO target VALUES ('${KEY}', 'old')`,
    );
  });
  afterEach(thawAll);
  after(async () => {
    await worker.close();
    await test.drop();
  });

  const request = (onBusy?: (typeof ON_BUSY)[number]) => ({ ...fillRequest(pipeline), onBusy });
  const fillInVain = (of: FillRequest) => withStatements({ rewrite: lockWaits(200) }, () => fill(worker, of));
  const values = async () => (await test.sql<{ value: string }>('SELECT value FROM target')).map(({ value }) => value);

  /** Runs `use` while a session of a person holds the window, after a statement that nobody else may hear of. */
  async function whileHeld(url: string, application: string, use: () => Promise<void>): Promise<void> {
    const person = new pg.Client({ connectionString: url, application_name: application });
    await person.connect();
    try {
      await person.query('BEGIN');
      await person.query(`SELECT pg_advisory_xact_lock($1::int, $2::int)`, [lock.space, lock.window]);
      await person.query(`SELECT '${SECRET}'`);
      await use();
    } finally {
      await person.end();
    }
  }

  for (const [onBusy, type] of [
    [undefined, 'Conflict'],
    ['wait', 'Conflict'],
    ['skip', 'Busy'],
    ['fail', 'Busy'],
  ] as const) {
    it(`by a person’s session: onBusy ${onBusy ?? 'absent'} is ${type}, which names it, and the old rows stand`, async () => {
      await whileHeld(test.url, 'psql', async () => {
        const failure = await failsAs(fillInVain(request(onBusy)), type);
        assert.equal(failure.final, type === 'Busy');
        assert.equal(failure.options.retryAfterMs === undefined, type === 'Busy');
        assert.match(
          failure.message,
          /^The window of target 2024-02-29 is held by pid \d+, role test_worker, application "psql", since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\. /,
        );
        assert.ok(!failure.message.includes(SECRET));
        assert.ok(failure.message.length < 300 && !failure.message.includes('\n'));
      });
      assert.deepEqual([await values(), await fills(test)], [['old'], []]);
      assert.equal((await fill(worker, request(onBusy))).rows, 1);
    });
  }

  it('by a session of another role, of which this one sees little: what is known is said', async () => {
    await whileHeld(test.superuserUrl, 'DB "x"\nof\tops', async () => {
      const failure = await failsAs(fillInVain(request('fail')), 'Busy');
      assert.match(failure.message, /is held by pid \d+, role \w+, application "DB [^\n\t]+"\. Start it again/);
      assert.ok(!failure.message.includes(SECRET));
    });
  });

  it('by another run: its run and partition are said; it is never ended, and both end well', async () => {
    const run = randomUUID();
    const live = new SteeredFill(test, worker, fillRequest(writes('live'), { run }), ['in copy']);
    assert.equal(await live.rest(), 'stopped');
    for (const onBusy of ['skip', 'fail'] as const) {
      const { message } = await within(onBusy, failsAs(fillInVain(request(onBusy)), 'Busy'));
      assert.match(message, new RegExp(`held by run ${run} of target ${KEY} \\(pid \\d+, since \\S+Z\\)\\. Start it`));
    }
    live.release();
    assert.equal((await live.end()).value?.rows, 1);
    assert.deepEqual(await values(), ['live']);
  });

  it('by `repave try`: it is said so', async () => {
    let goOn: () => void = () => undefined;
    let trial: Promise<unknown> = Promise.resolve();
    try {
      await within(
        'the trial',
        new Promise<void>((stopped) => {
          const window = fillRequest(pipeline).window;
          const before: StatementHooks['before'] = ({ kind }) => {
            if (kind !== 'count') return undefined;
            stopped();
            return new Promise<void>((resolve) => (goOn = resolve));
          };
          const { signal } = new AbortController();
          trial = withStatements({ before }, () => tryFill(worker, { pipeline, window, rows: 1, signal }));
        }),
      );
      const { message } = await failsAs(fillInVain(request('fail')), 'Busy');
      assert.match(message, /is held by a `repave try` \(pid \d+, role test_worker, since \S+Z\)\./);
    } finally {
      goOn();
      await trial;
    }
  });

  it('by nobody any more when it is looked at: it is tried again, whatever onBusy says', async () => {
    for (const onBusy of ON_BUSY) {
      const failure = await withStatements(
        // The locks are not to be had, and nobody is seen to hold one.
        {
          before: ({ kind }) => {
            if (kind === 'lock') throw Object.assign(new pg.DatabaseError('timeout', 0, 'error'), { code: '55P03' });
          },
        },
        () => failsAs(fill(worker, request(onBusy)), 'Conflict'),
      );
      assert.match(failure.message, /was held until just now/);
      assert.equal(failure.final, false);
    }
  });

  it('with the grid, by whoever changes that or waits to: soon over, so it is waited for, whatever onBusy says', async () => {
    await withClient(test.url, async (changes) => {
      await changes.query('BEGIN');
      await changes.query('SELECT pg_advisory_xact_lock($1::int8)', [gridLock({ root })]);
      assert.match((await failsAs(fillInVain(request('fail')), 'Conflict')).message, /held by pid \d+, role/);
    });
    await withClient(test.url, async (fills) => {
      await fills.query('BEGIN');
      await fills.query('SELECT pg_advisory_xact_lock_shared($1::int8)', [gridLock({ root })]);
      assert.equal(await holderOf(worker, { root }, lock), undefined, 'another fill is in nobody’s way');
      await withClient(test.url, async (changes) => {
        const waits = changes.query('SELECT pg_advisory_xact_lock($1::int8)', [gridLock({ root })]);
        await until('the change waits', async () => (await holderOf(worker, { root }, lock))?.grid);
        await failsAs(fillInVain(request('skip')), 'Conflict');
        await fills.query('COMMIT');
        await waits;
      });
    });
    assert.equal((await fill(worker, request('fail'))).rows, 1);
  });

  it('by an older attempt of the run that cannot be ended: it is no other run, and waited for', async () => {
    const run = randomUUID();
    const first = { ...fillRequest(pipeline, { run }), onBusy: 'fail' as const };
    // Another role's session, by the name of an attempt that this run has made.
    await whileHeld(test.superuserUrl, `repave ${run}/1 0`, async () => {
      const failure = await failsAs(fillInVain(first), 'Conflict');
      assert.match(failure.message, new RegExp(`held by run ${run} \\(pid`));
    });
  });

  it('by an attempt past its deadline: it is ended, and the window filled, whatever onBusy says', async () => {
    for (const onBusy of ON_BUSY) {
      const overdue = new SteeredFill(
        test,
        worker,
        fillRequest(writes('late')),
        ['in copy'],
        ({ kind, text, values }) =>
          kind === 'claim' ? { text: text.replace('secs => $6', 'secs => $6 * 0'), values } : undefined,
      );
      assert.equal(await overdue.rest(), 'stopped');
      // However long the backend that is ended takes to go.
      const filled = withStatements({ rewrite: untilLetGo }, () => fill(worker, request(onBusy)));
      assert.equal((await within(onBusy, filled)).rows, 1);
      overdue.release();
      await overdue.end();
    }
    assert.deepEqual(await values(), ['new']);
  });

  it('while it is waited for, no transaction of the one that waits is older than a try', async () => {
    await whileHeld(test.superuserUrl, 'psql', async () => {
      const superuser = superuserPool(test);
      const open = async (): Promise<string[]> => {
        const { rows } = await superuser.query<{ begun: string }>(
          `SELECT xact_start::text AS begun FROM pg_stat_activity
            WHERE datname = current_database() AND usename = $1 AND application_name LIKE 'repave%' AND xact_start IS NOT NULL`,
          [test.workerRole],
        );
        return rows.map(({ begun }) => begun);
      };
      const begun: string[] = [];
      const between: string[] = [];
      const before: StatementHooks['before'] = async ({ kind }) => {
        if (kind === 'begin') between.push(...(await unhooked(open)));
        if (kind === 'lock') begun.push(...(await unhooked(open)));
      };
      try {
        await withStatements({ before, rewrite: lockWaits(200) }, () =>
          failsAs(fill(worker, request('wait')), 'Conflict'),
        );
        assert.equal(begun.length, 3, 'one transaction each time');
        assert.equal(new Set(begun).size, 3, 'three transactions, one after the other');
        assert.deepEqual([...between, ...(await open())], [], 'and none between two tries');
      } finally {
        await superuser.end();
      }
    });
  });
});

function writes(value: string) {
  return typescriptPipeline(function* () {
    yield { day: KEY, value };
  });
}
