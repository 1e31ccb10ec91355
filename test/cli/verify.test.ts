import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keysBetween } from '../../src/calendar/range.js';
import { type PipelineView, viewPipeline } from '../../src/cli/pipeline-view.js';
import { loadPipeline } from '../../src/pipeline/load.js';
import { fill } from '../../src/warehouse/fill.js';
import { registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, withWorker } from '../support/fill.js';
import { document, makeProject, repave, SALES, SALES_SUMMARY } from './repave.js';

const REVENUE = `-- repave
-- target: revenue
-- partition: { column: month, by: month }
-- checksum: true
SELECT :date AS month, sum(amount) AS revenue FROM sales WHERE sold_on >= :date AND sold_on < :end_date
`;

interface VerifyDocument {
  readonly dryRun: boolean;
  readonly found: number;
  readonly findings: readonly { readonly pipeline: string; readonly key: string; readonly state: string }[];
  readonly pipelines: readonly object[];
  readonly notes: readonly string[];
  readonly failures: readonly { readonly pipeline: string; readonly type: string }[];
  readonly error?: { readonly type: string };
}

describe('repave verify', function () {
  this.timeout(600_000);
  let project: string;
  let test: TestDatabase;
  let env: Record<string, string>;

  before(async () => {
    project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY, 'pipelines/revenue.sql': REVENUE });
    test = await createTestDatabase();
    await test.sql(`${SALES} CREATE TABLE revenue (month date, revenue numeric)`);
    env = { DATABASE_URL: test.url };
    await refill('sales_summary', '1997-01-01', '1997-01-12');
  });
  after(async () => {
    await test.drop();
    rmSync(project, { recursive: true, force: true });
  });

  /** As a worker registers and fills it. */
  async function refill(name: string, from: string, to: string): Promise<void> {
    const pipeline = await loadPipeline(join(project, 'pipelines'), name);
    await withWorker(test, async (database) => {
      await registerPipeline(database, pipeline);
      for (const key of keysBetween(pipeline.partition, from, to)) await fill(database, fillRequest(pipeline, { key }));
    });
  }
  const run = (...words: string[]) => repave(project, ['verify', ...words], env);
  /** As status counts. */
  const view = (): Promise<PipelineView> =>
    withWorker(test, async (database) => {
      const registered = (await registeredPipelines(database)).find(({ name }) => name === 'sales_summary');
      assert.ok(registered);
      return viewPipeline(database, registered);
    });
  const planned = async (): Promise<string> =>
    (
      await repave(
        project,
        ['plan', 'sales_summary', '1997-01-01..1997-01-12', '--only', 'missing,outdated', '--csv'],
        env,
      )
    ).stdout;

  it('finds nothing, and passes over a pipeline that no worker has', async () => {
    const { code, stdout, stderr } = await run();
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '✓ sales_summary: 12 partitions compared, by count: none differs\n');
    assert.equal(stderr, 'No worker has registered revenue yet: the ledger has nothing of it.\n');
  });

  it('names what differs, which plan then has, until it is filled again', async () => {
    await refill('revenue', '1997-01', '1997-01');
    const before = await view();
    await test.sql(`DELETE FROM sales_summary WHERE sale_date IN ('1997-01-03', '1997-01-09');
      UPDATE revenue SET revenue = revenue + 1`);

    const dry = await run('--dry-run', '--json');
    assert.equal(dry.code, 1, dry.stderr);
    const { dryRun, found, findings, pipelines } = document<VerifyDocument>(dry);
    assert.deepEqual([dryRun, found], [true, 3]);
    assert.deepEqual(findings, [
      { pipeline: 'revenue', key: '1997-01', ledgerRows: 1, tableRows: 1, state: 'outdated' },
      { pipeline: 'sales_summary', key: '1997-01-03', ledgerRows: 1, tableRows: 0, state: 'missing' },
      { pipeline: 'sales_summary', key: '1997-01-09', ledgerRows: 1, tableRows: 0, state: 'missing' },
    ]);
    assert.deepEqual(pipelines[0], {
      ...{ pipeline: 'revenue', compared: 1, checksums: 1, unreadable: 0, outdated: 0, foundBefore: 0 },
      ...{ differing: 1, first: '1997-01', last: '1997-01' },
    });
    assert.equal(await planned(), 'key,reason,rows,filled_at\n');

    const one = await run('sales_summary', '1997-01-04', '1997-01-01..1997-01-03');
    assert.equal(one.code, 1, one.stderr);
    assert.equal(
      one.stdout,
      'pipeline\tkey\tledger says\ttable has\tnow counts as\nsales_summary\t1997-01-03\t1 row\t0 rows\tmissing\n\n' +
        '✗ sales_summary: 4 partitions compared, by count: 1 differs\n',
    );
    assert.equal(
      one.stderr,
      'A heal that reaches them fills them again, or:\n  repave backfill sales_summary 1997-01-03 --only missing,failed,outdated\n',
    );

    const rest = await run();
    assert.equal(rest.code, 1);
    assert.match(rest.stdout, /^revenue\t1997-01\t1 row\tother values\toutdated$/m);
    assert.match(rest.stdout, /^✗ revenue: 1 partition compared, by checksum: 1 differs$/m);
    assert.match(rest.stdout, /^✗ sales_summary: 11 partitions compared, by count: 1 differs$/m);
    assert.equal(await planned(), 'key,reason,rows,filled_at\n1997-01-03,missing,,\n1997-01-09,missing,,\n');
    const now = await view();
    assert.deepEqual([now.filled, now.outdated], [10, 0]);
    assert.equal(now.missing, (before.missing ?? 0) + 2, 'as plan has it');

    const again = await run();
    assert.equal(again.code, 1, 'until it is healed');
    assert.match(
      again.stdout,
      /^✗ revenue: nothing to compare\n {2}1 partition found before \(1997-01\) and not filled since, and so not compared\n/,
    );
    assert.match(
      again.stdout,
      /✗ sales_summary: 10 partitions compared, by count: none differs\n {2}2 partitions found before \(1997-01-03\.\.1997-01-09\)/,
    );
    assert.match(
      again.stderr,
      /repave backfill sales_summary 1997-01-03\.\.1997-01-09 --only missing,failed,outdated\n/,
    );
    assert.equal((await run('sales_summary', '1997-01-10..1997-01-12')).code, 0, 'none of these was found');

    const history = (...words: string[]) => repave(project, ['history', 'sales_summary', '1997-01-03', ...words], env);
    assert.match((await history()).stdout, /^! .* repave verify found 0 rows in place of 1; it was not filled since$/m);
    const standing = document<{ found?: { ledgerRows: number; tableRows: number } }>(await history('--json'));
    assert.deepEqual([standing.found?.ledgerRows, standing.found?.tableRows], [1, 0]);

    await refill('sales_summary', '1997-01-01', '1997-01-12');
    await refill('revenue', '1997-01', '1997-01');
    assert.equal((await run()).code, 0);
    assert.equal(document<{ found?: object }>(await history('--json')).found, undefined);
  });

  it('tells what it has recorded where it cannot go on, and then why, and with that code', async () => {
    // More than a month on, so by a pass of its own.
    await test.sql(`INSERT INTO sales VALUES ('1997-03-20', 1)`);
    await refill('sales_summary', '1997-03-20', '1997-03-20');
    await test.sql(`DELETE FROM sales_summary WHERE sale_date IN ('1997-01-04', '1997-03-20');
      CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P03'; END $$;
      CREATE TRIGGER refused BEFORE UPDATE ON repave.partition FOR EACH ROW WHEN (old.key = '1997-03-20') EXECUTE FUNCTION refused()`);
    const ended = await run('sales_summary', '--json');
    const { findings, failures, error } = document<VerifyDocument>(ended);
    assert.deepEqual(
      findings.map(({ key, state }) => [key, state]),
      [['1997-01-04', 'missing']],
    );
    assert.deepEqual([failures[0]?.type, error?.type], ['DatabaseUnavailable', 'DatabaseUnavailable']);
    assert.equal(ended.code, 3);

    await refill('sales_summary', '1997-01-04', '1997-01-04');
    await test.sql(`DELETE FROM sales_summary WHERE sale_date = '1997-01-04'`);
    const told = await run('sales_summary');
    assert.match(told.stdout, /^sales_summary\t1997-01-04\t1 row\t0 rows\tmissing$/m);
    assert.match(told.stderr, /^✗ sales_summary: /m);
    assert.equal(told.code, 3);
    await test.sql('DROP TRIGGER refused ON repave.partition; DROP FUNCTION refused()');
    await refill('sales_summary', '1997-01-04', '1997-01-04');
    await refill('sales_summary', '1997-03-20', '1997-03-20');
  });

  it('looks at nothing from before the pipeline’s start, which could not be filled again', async () => {
    const file = join(project, 'pipelines/sales_summary.sql');
    await test.sql(`DELETE FROM sales_summary WHERE sale_date < '1997-01-03'`);
    writeFileSync(file, SALES_SUMMARY.replace('start: 1997-01-01', 'start: 1997-01-03'));
    const all = await run('sales_summary');
    assert.equal(all.code, 0, all.stdout);
    assert.equal(all.stdout, '✓ sales_summary: 11 partitions compared, by count: none differs\n');
    const some = await run('sales_summary', '1997-01-01..1997-01-04');
    assert.equal(some.code, 0, some.stdout);
    assert.match(some.stderr, /2 partitions are left out: .* before the pipeline's start 1997-01-03/);
    writeFileSync(file, SALES_SUMMARY);
    await refill('sales_summary', '1997-01-01', '1997-01-02');
  });

  it('refuses what no pipeline is, and goes on with the others where one cannot be compared', async () => {
    const nobody = await run('nobody');
    assert.equal(nobody.code, 2);
    assert.match(nobody.stderr, /There is no pipeline "nobody"/);
    assert.equal((await run('sales_summary', '1997-W01')).code, 2);

    writeFileSync(join(project, 'pipelines/revenue.sql'), REVENUE.replaceAll('month', 'quarter'));
    const ended = await run('--json');
    assert.equal(ended.code, 2);
    const { failures, pipelines } = document<VerifyDocument>(ended);
    assert.deepEqual(
      failures.map(({ pipeline, type }) => [pipeline, type]),
      [['revenue', 'InvalidInput']],
    );
    assert.equal(pipelines.length, 2);
  });
});
