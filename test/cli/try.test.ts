import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { document, makeProject, repave, SALES, SALES_SUMMARY, startOnTerminal, startRepave } from './repave.js';

interface TryDocument {
  readonly ok: boolean;
  readonly changed: boolean;
  readonly target: string;
  readonly deleted: number;
  readonly inserted: number;
  readonly checks: readonly { readonly check: string; readonly passed: boolean; readonly seen: string }[];
  readonly error?: { readonly type: string; readonly message: string };
  readonly seconds: Readonly<Record<string, number>>;
  readonly rows: readonly Readonly<Record<string, string | null>>[];
  readonly notes: readonly string[];
}

const OPEN = `-- repave
-- target: open
-- partition: { column: day, by: day }
`;

describe('repave try', function () {
  this.timeout(600_000);
  let project: string;
  let database: TestDatabase;
  let shop: TestDatabase;
  let env: Record<string, string>;

  before(async () => {
    project = makeProject({
      'pipelines/sales_summary.sql': SALES_SUMMARY,
      'pipelines/slow.sql': `${OPEN}SELECT :date AS day, pg_sleep(600)::text AS note\n`,
      'pipelines/relayed.sql': `${OPEN}-- source: SHOP_URL\nSELECT day, note FROM notes WHERE day = :date\n`,
      'pipelines/ending.ts': `import { definePipeline } from 'repave';
export default definePipeline({
  target: 'open', partition: { column: 'day', by: 'day' },
  async *rows({ key }) {
    if (key === '2024-02-01') process.exit(0);
    for (;;) { console.log('a word of its own'); await new Promise((go) => setTimeout(go, 100)); }
  },
});
`,
      'pipelines/coded.ts': `import { definePipeline } from 'repave';
export default definePipeline({
  target: 'open', partition: { column: 'day', by: 'day' },
  ready: ({ key }) => key !== '2024-02-01',
  *rows({ key }) { yield { day: key, note: 'from code' }; },
});
`,
    });
    // Without a ledger: none is needed.
    [database, shop] = await Promise.all([
      createTestDatabase({ ledger: false }),
      createTestDatabase({ ledger: false }),
    ]);
    await database.sql(`${SALES} CREATE TABLE open (day date NOT NULL, note text)`);
    await shop.sql(
      `CREATE TABLE notes (day date, note text); INSERT INTO notes VALUES ('2024-02-01', 'from the shop')`,
    );
    env = { DATABASE_URL: database.url, SHOP_URL: shop.url };
  });
  after(async () => {
    await Promise.all([database.drop(), shop.drop()]);
    rmSync(project, { recursive: true, force: true });
  });

  const untouched = async (): Promise<void> => {
    for (const name of ['sales_summary', 'open']) assert.deepEqual(await database.sql(`SELECT FROM ${name}`), [], name);
  };

  it('shows what a fill would do, on standard output, and says that nothing was changed', async () => {
    const { code, stdout, stderr } = await repave(project, ['try', 'sales_summary', '1997-01-02'], env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^sales_summary 1997-01-02 {2}in public\.sales_summary\n/);
    assert.match(stdout, / {2}1997-01-02T00:00:00Z to 1997-01-03T00:00:00Z \(UTC\)\n/);
    assert.match(stdout, /would delete 0 rows and insert 1 row\n/);
    assert.match(stdout, /✓ rows \(min 1\): 1 row\n {2}✓ unique \(sale_date\): /);
    assert.match(stdout, /lock \d+.*delete \d+.*insert \d+.*check \d+/);
    assert.match(stdout, /\nsale_date\torders\trevenue\n1997-01-02\t2\t25\.00\n/);
    assert.match(stderr, /Rolled back: nothing was changed\./);
    await untouched();
  });

  it('is one JSON document, rows included', async () => {
    const tried = document<TryDocument>(await repave(project, ['try', 'sales_summary', '1997-01-02', '--json'], env));
    assert.deepEqual(
      [tried.ok, tried.changed, tried.target, tried.deleted, tried.inserted, tried.notes],
      [true, false, 'public.sales_summary', 0, 1, []],
    );
    assert.deepEqual(tried.rows, [{ sale_date: '1997-01-02', orders: '2', revenue: '25.00' }]);
    assert.deepEqual(Object.keys(tried.seconds), ['lock', 'delete', 'insert', 'check']);
    const none = await repave(project, ['try', 'sales_summary', '1997-01-02', '--json', '--rows', '0'], env);
    assert.deepEqual(document<TryDocument>(none).rows, []);
  });

  it('ends with 1 where a check fails, and shows it among the others', async () => {
    const words = ['try', 'sales_summary', '1997-01-13'];
    const { code, stdout, stderr } = await repave(project, words, env);
    assert.equal(code, 1);
    assert.match(stdout, /✗ rows \(min 1\): 0 rows\n {2}✓ unique/);
    assert.match(stderr, /✗ The new rows of sales_summary 1997-01-13 do not pass .*\nRolled back/);
    const tried = document<TryDocument>(await repave(project, [...words, '--json'], env));
    assert.deepEqual([tried.ok, tried.error?.type], [false, 'CheckFailed']);
  });

  it('runs code, asks `ready` first, and reads from another server', async () => {
    const coded = await repave(project, ['try', 'coded', '2024-02-02'], env);
    assert.match(coded.stdout, /\n2024-02-02\tfrom code\n/, coded.stderr);
    const unready = await repave(project, ['try', 'coded', '2024-02-01', '--json'], env);
    assert.equal(unready.code, 1);
    const { error } = document<TryDocument>(unready);
    assert.equal(error?.type, 'SourceNotReady');
    assert.match(error?.message ?? '', /is not there yet\. Nothing was changed\.$/);
    const relayed = await repave(project, ['try', 'relayed', '2024-02-01'], env);
    assert.match(relayed.stdout, /\n2024-02-01\tfrom the shop\n/, relayed.stderr);
    await untouched();
  });

  it('is not ended by code that calls process.exit: that fails', async () => {
    const { code, stderr } = await repave(project, ['try', 'ending', '2024-02-01'], env);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /The code of ending called process\.exit for 2024-02-01/);
  });

  it('ends where nobody reads what it writes, though a pipeline’s code has written it', async () => {
    const running = startRepave(project, ['try', 'ending', '2024-02-02'], env);
    running.process.stdout?.destroy();
    const { code, stderr } = await running.ended;
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /process\.exit/);
  });

  it('takes an unfinished partition with a word, and refuses one in the future and no key at all', async () => {
    const today = (): string => new Date().toISOString().slice(0, 10);
    const unfinished = await until('a trial within one day', async () => {
      const day = today();
      const ended = await repave(project, ['try', 'coded', day], env);
      return day === today() && ended;
    });
    assert.equal(unfinished.code, 0, unfinished.stderr);
    assert.match(unfinished.stderr, /is unfinished until .*a backfill leaves it out unless --include-unfinished/);
    const early = await repave(project, ['try', 'sales_summary', '1996-12-31'], env);
    assert.match(early.stderr, /1996-12-31 is before the pipeline's start 1997-01-01: a backfill leaves it out/);
    const future = await repave(project, ['try', 'coded', '2999-01-01'], env);
    assert.deepEqual([future.code, future.stdout], [2, '']);
    assert.match(future.stderr, /in the future: expected one that has begun/);
    const bad = await repave(project, ['try', 'coded', '2024-02-30'], env);
    assert.equal(bad.code, 2);
    assert.match(bad.stderr, /expected a day such as/);
    assert.equal((await repave(project, ['try', 'coded', '2024-02-02', '--rows', '1001'], env)).code, 2);
  });

  it('says of a pipeline that workers would refuse why, and ends with 1', async () => {
    const held = await createTestDatabase();
    try {
      await held.sql(`${SALES} INSERT INTO repave.pipeline (name, target, partition_column, by, zone, fingerprint)
                      VALUES ('other', 'public.sales_summary', 'sale_date', 'day', 'UTC', 'v1:x')`);
      const ended = await repave(project, ['try', 'sales_summary', '1997-01-02'], { DATABASE_URL: held.url });
      assert.equal(ended.code, 1);
      assert.match(ended.stderr, /! public\.sales_summary is the target of other too/);
      assert.deepEqual(await held.sql('SELECT FROM sales_summary'), []);
    } finally {
      await held.drop();
    }
  });

  for (const [how, start] of [
    ['Ctrl-C on a terminal', startOnTerminal],
    ['SIGTERM', startRepave],
  ] as const) {
    it(`ends its query and rolls back on ${how}, with 130`, async () => {
      const running = start(project, ['try', 'slow', '2024-02-02'], env);
      const sleeping = async () => {
        const rows = await asSuperuser(
          database,
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
        );
        return rows.length > 0;
      };
      await until('its query runs', sleeping);
      if (how === 'SIGTERM') running.process.kill('SIGTERM');
      else running.process.stdin?.write('\x03');
      const { code, stdout, stderr } = await running.ended;
      assert.equal(code, 130, stdout + stderr);
      assert.match(stdout + stderr, /was interrupted and rolled back: nothing was changed/);
      assert.equal(await sleeping(), false);
      await untouched();
    });
  }
});
