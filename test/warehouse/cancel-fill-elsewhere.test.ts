import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { endFill } from '../../src/warehouse/end-fill.js';
import { fill } from '../../src/warehouse/fill.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { atWork, superuserPool } from '../support/at-work.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  failsAs,
  fillRequest,
  fills,
  KEY,
  ledgerRows,
  NO_LOOKS_MS,
  openFills,
  sqlPipeline,
  typescriptPipeline,
  until,
  within,
} from '../support/fill.js';
import { HELD } from '../support/held.js';
import { type StatementHooks, type StatementKind, withStatements } from '../support/statements.js';

const FAST = sqlPipeline('SELECT :date AS day, g::text AS n FROM generate_series(1, 3) g');
const SLOW = sqlPipeline("SELECT :date AS day, 'slow' AS n FROM pg_sleep(600)");
const ROWS = typescriptPipeline(function* ({ key }) {
  for (const n of ['1', '2', '3']) yield { day: key, n };
});

describe('a fill ended from another worker', () => {
  let test: TestDatabase;
  let superuser: pg.Pool;
  let database: Database;
  let elsewhere: Database;

  before(async () => {
    test = await createTestDatabase();
    await test.sql(`CREATE TABLE target (day date NOT NULL, n text NOT NULL); ${HELD}`);
    superuser = superuserPool(test);
    database = await openDatabase(test.url, { fills: 2, watchEveryMs: NO_LOOKS_MS });
    elsewhere = await openDatabase(test.url, { fills: 1 });
  });

  after(async () => {
    await database.close();
    await elsewhere.close();
    await superuser.end();
    await test.drop();
  });

  beforeEach(async () => {
    await test.sql('TRUNCATE target, held, repave.fill, repave.failure, repave.partition, repave.claim');
    await test.sql(`INSERT INTO target VALUES ($1, 'old')`, [KEY]);
  });

  it('leaves no query of it, and refuses its next attempt', async () => {
    const run = randomUUID();
    const failed = failsAs(fill(database, fillRequest(SLOW, { run })), 'DatabaseUnavailable');
    await until('its query runs', () => asleep(run));
    await endedAndGone(run);
    await within('the fill', failed);
    await refused(run);
  });

  for (const point of ['begin', 'lock', 'delete', 'guard', 'commit'] as const) {
    it(`leaves nothing of it where its worker is frozen before its ${point}`, async () => {
      const run = randomUUID();
      const frozen = freezeBefore(point);
      const thawed = withStatements(frozen.hooks, () =>
        fill(database, fillRequest(FAST, { run })).then(
          () => assert.fail('the fill ended well'),
          (error: unknown) => error as { type?: string },
        ),
      );
      await within('the freeze', frozen.reached);
      await endedAndGone(run);
      frozen.thaw();
      const failure = await within('the thawed fill', thawed);
      // Before its transaction began there was no backend to end: its claim is closed.
      assert.equal(failure.type, point === 'begin' ? 'StaleAttempt' : 'DatabaseUnavailable');
      await refused(run);
    });
  }

  it('leaves nothing of a COPY whose worker is frozen', async () => {
    const run = randomUUID();
    let begun = (): void => undefined;
    const copies = new Promise<void>((resolve) => (begun = resolve));
    let thaw = (): void => undefined;
    const thawed = new Promise<void>((resolve) => (thaw = resolve));
    const copying: StatementHooks['copying'] = () => {
      begun();
      return thawed;
    };
    const failed = withStatements({ copying }, () =>
      failsAs(fill(database, fillRequest(ROWS, { run })), 'DatabaseUnavailable'),
    );
    await within('the COPY', Promise.race([copies, failed]));
    await endedAndGone(run);
    thaw();
    await within('the thawed fill', failed);
    await refused(run);
  });

  it('refuses an attempt that comes after it', async () => {
    const run = randomUUID();
    assert.equal(await endFill(elsewhere, { pipeline: 'target', key: KEY, run }), undefined);
    await refused(run);
  });

  it('would land when its worker thaws, were its claim not closed', async () => {
    const run = randomUUID();
    const frozen = freezeBefore('begin');
    const thawed = withStatements(frozen.hooks, () => fill(database, fillRequest(FAST, { run })));
    await within('the freeze', frozen.reached);
    const openClaim: StatementHooks['rewrite'] = ({ kind }) =>
      kind === 'claim' ? { text: 'SELECT WHERE false', values: [] } : undefined;
    await withStatements({ rewrite: openClaim }, () => endFill(elsewhere, { pipeline: 'target', key: KEY, run }));
    frozen.thaw();
    await within('the thawed fill', thawed);
    await assert.rejects(refused(run), assert.AssertionError);
  });

  it('ends none but its own run’s, and may be told twice', async () => {
    const run = randomUUID();
    const other = randomUUID();
    await test.sql('INSERT INTO held VALUES (true)');
    const filling = fill(database, fillRequest(sqlPipeline('SELECT :date AS day, waits()::text AS n'), { run: other }));
    await until('the other’s query runs', () => asleep(other));
    for (let i = 0; i < 2; i++)
      assert.equal(await endFill(elsewhere, { pipeline: 'target', key: KEY, run }), undefined);
    await test.sql('DELETE FROM held');
    assert.equal((await within('the other', filling)).rows, 1);
  });

  it('returns the fill that had committed, to recordFailure too, which then records nothing', async () => {
    const run = randomUUID();
    const { fence } = await fill(database, fillRequest(FAST, { run }));
    const work = { pipeline: 'target', key: KEY, run };
    const ended = await endFill(elsewhere, work);
    assert.deepEqual([ended?.fence, ended?.rows, ended?.deleted, ended?.found], [fence, 3, 1, true]);
    const recorded = await recordFailure(elsewhere, { ...work, attempt: 1, type: 'TimedOut', message: 'late' });
    assert.equal(recorded?.fence, fence);
    assert.deepEqual(await test.sql('SELECT FROM repave.failure'), []);
    assert.equal((await ledgerRows(test))[0]?.outcome, 'filled');
  });

  async function endedAndGone(run: string): Promise<void> {
    const ended = await within('endFill', endFill(elsewhere, { pipeline: 'target', key: KEY, run }));
    assert.equal(ended, undefined);
    assert.deepEqual(await atWork(superuser, run), []);
    assert.equal(await openFills(test, run), 0);
  }

  /** The old rows stand, no attempt of the run may begin again, and another run may. */
  async function refused(run: string): Promise<void> {
    assert.deepEqual(await test.sql('SELECT n FROM target'), [{ n: 'old' }]);
    await failsAs(fill(database, fillRequest(FAST, { run, attempt: 9 })), 'StaleAttempt');
    assert.deepEqual(await fills(test), []);
    await within('another run', fill(database, fillRequest(FAST)));
  }

  async function asleep(run: string): Promise<boolean> {
    const { rows } = await superuser.query(
      `SELECT FROM pg_stat_activity WHERE application_name LIKE 'repave ' || $1 || '/%' AND wait_event = 'PgSleep'`,
      [run],
    );
    return rows.length > 0;
  }
});

/** Stops an attempt before its first statement of a kind, as where its worker is frozen. */
function freezeBefore(kind: StatementKind) {
  let reach = (): void => undefined;
  let thaw = (): void => undefined;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const thawed = new Promise<void>((resolve) => (thaw = resolve));
  const hooks: StatementHooks = {
    before: (statement) => {
      if (statement.kind !== kind) return undefined;
      reach();
      return thawed;
    },
  };
  return { hooks, reached, thaw };
}
