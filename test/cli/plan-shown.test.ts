import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { showPlan } from '../../src/cli/plan.js';
import { backfillCommand, estimateText } from '../../src/cli/plan-text.js';
import { createOutput } from '../../src/cli/output.js';
import { loadPipeline } from '../../src/pipeline/load.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { asSuperuser } from '../support/superuser.js';
import { keptContext } from './plan-context.js';
import { makeProject, SALES, SALES_SUMMARY } from './repave.js';

/** 250 days, of which the first 150 are filled. */
const ASKED = { pipeline: 'sales_summary', from: '1997-01-01', to: '1997-09-07' } as const;

describe('how a plan is shown', () => {
  let project: string;
  let database: TestDatabase;
  let env: Record<string, string>;

  before(async () => {
    project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY });
    database = await createTestDatabase();
    await database.sql(SALES);
    env = { DATABASE_URL: database.url };
    const { fingerprint } = await loadPipeline(`${project}/pipelines`, 'sales_summary');
    await database.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
       SELECT 'sales_summary', to_char(date '1997-01-01' + n, 'YYYY-MM-DD'), 'filled', 1000 + n, $1, timestamptz '2024-05-06 07:08:09Z', 'r', 1, n
         FROM generate_series(0, 149) n`,
      [fingerprint],
    );
  });
  after(async () => {
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  const shown = async (options: Parameters<typeof showPlan>[2] = {}, isTTY = true) => {
    const context = keptContext(project, env, { isTTY });
    assert.equal(await showPlan(context, ASKED, options), 0);
    return { lines: context.stdout().trimEnd().split('\n'), said: context.stderr() };
  };

  it('on a terminal 100 a page, and says how many more there are', async () => {
    const first = await shown();
    assert.equal(first.lines.length, 101);
    assert.match(first.lines[1] ?? '', /^1997-01-01 {2}filled +1,000 {2}2024-05-06 07:08:09 UTC$/);
    assert.match(first.said, /150 more behind these: --page 2, or --all\./);
    const last = await shown({ page: 3 });
    assert.deepEqual([last.lines.length, last.lines.at(-1)?.trimEnd()], [51, '1997-09-07  missing']);
    assert.doesNotMatch(last.said, /more behind/);
    assert.match((await shown({ page: 9 })).said, /There is no page 9: the last one is 3\./);
    assert.equal((await shown({ all: true })).lines.length, 251);
  });

  it('in a pipe all of them; with --page that page', async () => {
    assert.equal((await shown({}, false)).lines.length, 251);
    assert.equal((await shown({ page: 2 }, false)).lines.length, 101);
  });

  it('as CSV, with a heading, and nothing else on standard output', async () => {
    const { lines, said } = await shown({ csv: true });
    assert.deepEqual(
      [lines.length, lines[0], lines[1], lines.at(-1)],
      [251, 'key,reason,rows,filled_at', '1997-01-01,filled,1000,2024-05-06T07:08:09.000Z', '1997-09-07,missing,,'],
    );
    assert.match(said, /250 partitions to fill \(100 missing, 150 filled\)/);
  });

  it('with its id, the command that fills exactly it, and how long that takes once it is known', async () => {
    const before = (await shown()).said;
    assert.match(before, /How long it takes is not known yet/);
    const command = /Fill exactly this:\n {2}(repave backfill .*)/.exec(before)?.[1];
    assert.match(
      command ?? '',
      /^repave backfill sales_summary 1997-01-01\.\.1997-09-07 --plan p1-[0-9a-f]{12}-missing100-filled150-[0-9a-f]{20}$/,
    );
    await database.sql(
      `INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint, rows_deleted, rows_inserted, seconds, checks, warnings, adopted)
       SELECT 'sales_summary', '1997-01-01', now(), now(), 'run' || n, '1', 1, n, 'f', 0, 1, CASE WHEN n > 5 THEN 900 ELSE 2 END, '[]', '{}', n > 5 FROM generate_series(1, 10) n`,
    );
    try {
      const context = keptContext(project, env, { json: true });
      await showPlan(context, { ...ASKED, concurrency: 5 });
      const { estimate, input, id } = JSON.parse(context.stdout()) as Record<string, unknown>;
      assert.deepEqual(
        estimate,
        { seconds: 100, secondsPerPartition: 2, fills: 5, concurrency: 5 },
        'adopting took no fill',
      );
      assert.deepEqual(input, { ...ASKED, concurrency: 5, plan: id });
      assert.match((await shown()).said, /About 2 min 5 s, 4 at a time, 2 s each as the last 5 fills took\./);
    } finally {
      await database.sql('TRUNCATE repave.fill');
    }
  });

  it('to a role that may only read, in transactions that may not write', async () => {
    const role = `reader_${randomBytes(6).toString('hex')}`;
    const url = new URL(database.url);
    url.username = role;
    url.password = 'reader';
    await asSuperuser(database, `CREATE ROLE ${role} LOGIN PASSWORD 'reader'`);
    try {
      await database.sql(
        `GRANT USAGE ON SCHEMA repave TO ${role}; GRANT SELECT ON ALL TABLES IN SCHEMA repave TO ${role}`,
      );
      await asSuperuser(database, `ALTER ROLE ${role} SET default_transaction_read_only = on`);
      const context = keptContext(project, { DATABASE_URL: url.href }, { json: true });
      assert.equal(await showPlan(context, { ...ASKED, only: ['missing'] }), 0);
      assert.equal((JSON.parse(context.stdout()) as { total: number }).total, 100);
    } finally {
      await asSuperuser(database, `DROP OWNED BY ${role}`);
      await asSuperuser(database, `DROP ROLE ${role}`);
    }
  });

  it('is refused where two ways to show it are asked for, or a page that cannot be', async () => {
    const context = keptContext(project, env);
    await assert.rejects(showPlan(context, ASKED, { csv: true, page: 1 }), /--csv and --page are given/);
    await assert.rejects(showPlan(context, ASKED, { page: 0 }), /--page is 0: expected a number from 1 on/);
    const json = keptContext(project, env, { json: true });
    await assert.rejects(showPlan(json, ASKED, { csv: true }), /--json and --csv are given/);
  });

  it('by `backfill --dry-run --plan` is held against that plan', async () => {
    const plan = `p1-0123456789ab-missing1-${'0'.repeat(20)}`;
    const context = keptContext(project, env, { json: true });
    assert.equal(await showPlan(context, { ...ASKED, plan }), 2);
    const { error, total } = JSON.parse(context.stdout()) as { error: { type: string }; total: number };
    assert.deepEqual([error.type, total], ['PlanChanged', 250]);
    assert.match(context.stderr(), /Then: 1 partition \(1 missing\); now: 250 partitions.*The query changed/);
    const { id } = JSON.parse(context.stdout()) as { id: string };
    assert.equal(await showPlan(keptContext(project, env), { ...ASKED, plan: id }), 0);
  });
});

describe('a plan in words', () => {
  it('has every flag of the command that starts it', () => {
    assert.equal(
      backfillCommand({
        pipeline: 'mart/sales',
        keys: ['2024-01-01', '2024-01-05..2024-01-06'],
        only: ['missing', 'failed'],
        order: 'newest-first',
        concurrency: 3,
        onBusy: 'skip',
        onFailure: 'pause',
        maxFailures: 2,
        includeUnfinished: true,
        plan: 'ID',
      }),
      'repave backfill mart/sales 2024-01-01 2024-01-05..2024-01-06 --only missing,failed --order newest-first ' +
        '--concurrency 3 --on-busy skip --on-failure pause --max-failures 2 --include-unfinished --plan ID',
    );
    assert.equal(backfillCommand({ pipeline: 's', from: '2024', to: '2024' }), 'repave backfill s 2024');
  });

  it('is honest about short times', () => {
    const estimate = { seconds: 0.2, secondsPerPartition: 0.01, fills: 1, concurrency: 4 };
    assert.equal(estimateText(estimate), 'About 1 s, 4 at a time, less than 0.1 s each as the last fill took.');
  });
});

describe('a result that is too long to be held', () => {
  it('waits for its reader', async () => {
    const written: string[] = [];
    let drain = (): void => undefined;
    const stdout = {
      write: (text: string) => (written.push(text), false),
      once: (_: 'drain', listener: () => void) => (drain = listener),
    };
    const { pour } = createOutput({}, {}, stdout, { write: () => true });
    let poured = false;
    const pouring = pour('a page').then(() => (poured = true));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([written, poured], [['a page'], false]);
    drain();
    await pouring;
    assert.equal(poured, true);
  });
});
