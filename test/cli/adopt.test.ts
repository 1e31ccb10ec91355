import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/fill.js';
import { withClient } from '../support/template.js';
import { document, makeProject, repave, startRepave } from './repave.js';

interface AdoptDocument {
  readonly adopted: number;
  readonly first?: string;
  readonly last?: string;
  readonly rows: number;
  readonly leftOut: { readonly empty: number; readonly known: number };
  readonly rowsOutside?: number;
  readonly notes: readonly string[];
  readonly error?: { readonly type: string };
}

const HISTORY = '-- repave\n-- target: history\n-- partition: { column: day, by: day }\nSELECT :date AS day, 1 AS n\n';

describe('repave adopt', function () {
  this.timeout(600_000);
  let project: string;
  let database: TestDatabase;
  let env: Record<string, string>;

  before(async () => {
    project = makeProject({ 'pipelines/history.sql': HISTORY });
    database = await createTestDatabase({ ledger: false });
    // Four years but for Sundays, one row in the future, one without a date and one before all time.
    await database.sql(`CREATE TABLE history (day date, n int);
      INSERT INTO history SELECT day, n FROM generate_series(date '2020-03-02', '2023-12-31', '1 day') day, generate_series(1, 3) n
       WHERE extract(dow FROM day) <> 0;
      INSERT INTO history VALUES ('2999-01-01', 1), (NULL, 1), ('-infinity', 1)`);
    env = { DATABASE_URL: database.url, REPAVE_MIGRATE_URL: database.ownerUrl };
  });
  after(async () => {
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  const adopt = (...words: string[]) => repave(project, ['adopt', 'history', ...words], env);
  const rowsOfHistory = () =>
    database.sql('SELECT md5(string_agg(ctid::text || xmin::text, $$ $$ ORDER BY ctid)) FROM history');

  it('asks for a ledger first', async () => {
    const ended = await adopt();
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /no ledger.*Run `repave migrate`/);
  });

  it('records, after `repave migrate` and without a worker, every partition that has rows', async () => {
    const before = await rowsOfHistory();
    const role = new URL(database.url).username;
    const migrated = await repave(project, ['migrate', '--role', role, '--apply-grants'], env);
    assert.equal(migrated.code, 0, migrated.stderr);

    const dry = document<AdoptDocument>(await adopt('--dry-run', '--json'));
    assert.deepEqual(await database.sql('SELECT FROM repave.pipeline'), []);
    const { code, stdout, stderr } = await adopt();
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^✓ history 2020-03-02\.\.2023-12-30: 1,200 partitions adopted, 3,600 rows\n/);
    assert.match(stdout, /left out that hold no row, and stay missing \(--empty takes them in\)/);
    assert.match(stdout, /\n {2}3 rows lie outside the adopted partitions or have no date\n/);
    assert.equal(dry.rowsOutside, 3);
    assert.deepEqual([dry.adopted, dry.rows, dry.first, dry.last], [1200, 3600, '2020-03-02', '2023-12-30']);
    assert.deepEqual(await rowsOfHistory(), before);

    const plan = await repave(
      project,
      ['plan', 'history', '2020-03-02..2023-12-31', '--only', 'missing', '--json'],
      env,
    );
    assert.equal(document<{ total: number }>(plan).total, 200, 'the Sundays, and nothing else');
    const told = await repave(project, ['history', 'history', '2020-03-02'], env);
    assert.match(told.stdout, /3 rows that stood there were adopted/);

    const again = document<AdoptDocument>(await adopt('--json'));
    assert.deepEqual([again.adopted, again.leftOut.known], [0, 1200]);
  });

  it('takes keys and ranges, and the empty where that is asked for', async () => {
    const sundays = document<AdoptDocument>(await adopt('2020-03-08', '2020-03-15', '--empty', '--json'));
    assert.deepEqual([sundays.adopted, sundays.rows, sundays.first, sundays.last], [2, 0, '2020-03-08', '2020-03-15']);
    assert.equal(sundays.rowsOutside, undefined, 'whoever names keys knows that there is more');
    const range = document<AdoptDocument>(
      await adopt('--from', '2020-03-16', '--to', '2020-03-22', '--empty', '--json'),
    );
    assert.deepEqual([range.adopted, range.leftOut.known], [1, 6]);
    for (const words of [['2999-01-01'], ['2020-03-02', '--from', '2020-03-01']]) {
      assert.equal((await adopt(...words)).code, 2, words.join(' '));
    }
  });

  it('counts as filled by the version that workers have, and says so', async () => {
    await database.sql(`UPDATE repave.pipeline SET fingerprint = 'v1:theirs'`);
    const ended = await adopt('2020-03-29', '--empty', '--json');
    assert.match(document<AdoptDocument>(ended).notes.join(), /another version of history.*count as filled by theirs/);
    assert.deepEqual(await database.sql(`SELECT key FROM repave.partition WHERE fingerprint = 'v1:theirs'`), [
      { key: '2020-03-29' },
    ]);
  });

  it('refuses windows other than those of the workers', async () => {
    const weekly = makeProject({ 'pipelines/history.sql': HISTORY.replace('by: day', 'by: week') });
    const ended = await repave(weekly, ['adopt', 'history', '2020-W10'], env);
    rmSync(weekly, { recursive: true });
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /another target, partition or scope than its file here/);
  });

  it('keeps on Ctrl-C what it has recorded, and says how to go on', async () => {
    await database.sql('TRUNCATE repave.partition, repave.fill');
    await withClient(database.superuserUrl, async (blocker) => {
      // It stands before its second chunk's entry.
      await blocker.query(
        `BEGIN; INSERT INTO repave.partition (pipeline, key, outcome, run, attempt, fence) VALUES ('history', '2023-06-01', 'failed', 'r', 1, 1)`,
      );
      const running = startRepave(project, ['adopt', 'history', '--json'], env);
      await running.says(/… 2022-11-26/);
      await until('it waits for that row', async () => {
        const { rows } = await blocker.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'`,
        );
        return rows.length > 0;
      });
      running.process.kill('SIGINT');
      const ended = await running.ended;
      assert.equal(ended.code, 130);
      const { adopted, last, error } = document<AdoptDocument>(ended);
      assert.deepEqual([error?.type, last], ['Interrupted', '2022-11-26']);
      assert.match(ended.stderr, /Run it again to go on: what is recorded stays/);
      await blocker.query('ROLLBACK');
      assert.deepEqual(await database.sql('SELECT count(*)::int AS n FROM repave.partition'), [{ n: adopted }]);
    });
    assert.equal((await adopt()).code, 0);
    assert.deepEqual(await database.sql('SELECT count(*)::int AS n FROM repave.partition'), [{ n: 1200 }]);
  });
});
