import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DemoOutcome } from '../../src/dev/demo.js';
import type { DemoHealOutcome, DemoPicture } from '../../src/dev/demo-heal.js';
import type { DemoReport } from '../../src/dev/demo-report.js';
import { identify, type ProcessIdentity, runs } from '../../src/process-identity.js';
import { document, type Ended, repave, startRepave } from '../cli/repave.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { testTemporal } from '../support/temporal.js';
import { createProject } from '../support/worker.js';

describe('repave demo', function () {
  this.timeout(900_000);
  let project: string;
  let theirs: TestDatabase;
  before(async () => {
    project = await createProject({});
    chmodSync(project, 0o711);
    theirs = await createTestDatabase({ ledger: false });
    await theirs.sql('CREATE TABLE sales AS SELECT n AS id, md5(n::text) AS note FROM generate_series(1, 1000) AS n');
    await theirs.sql('CREATE TABLE sales_summary AS SELECT 1 AS mine');
  });
  after(() => theirs.drop());

  it('fills every date though its worker is killed, and a second run does it again; servers of the environment stay as they were', async () => {
    const before = await checksum(theirs);
    const env = await theirEnvironment();

    const first = startRepave(project, ['demo', '--json'], env);
    const worker = Number(/A worker runs, pid (\d+)/.exec(await first.says(/A worker runs, pid \d+/))?.[1]);
    await first.says(/\d+ of 546 · .* · [1-9][\d,]* rows/);
    process.kill(worker, 'SIGKILL');
    const ended = await first.ended;
    assert.match(ended.stderr, /The worker ended \(signal SIGKILL\)/);
    holdsTheExample(ended, 546);
    nothingRuns(project);

    holdsTheExample(await repave(project, ['demo', '--json'], env), 1092);
    nothingRuns(project);
    assert.equal(await checksum(theirs), before);
  });

  it('breaks three dates on purpose, finds them and heals them, and every date is right again, stopped half-way before or not', async () => {
    const env = await theirEnvironment();
    const demo = startRepave(project, ['demo', 'heal'], env);
    await demo.says(/1997-08-14: its purchases go astray/);
    demo.process.kill('SIGINT');
    const stopped = await demo.ended;
    assert.equal(stopped.code, 130);
    assert.match(stopped.stderr, /stopped half-way; run again, it sets right what it broke/);
    nothingRuns(project);

    const ended = await repave(project, ['demo', 'heal', '--json'], env);
    assert.equal(ended.code, 0, ended.stderr);
    const { before, broken, healed, findings, result, report } = document<DemoHealOutcome & Pictures>(ended);
    assert.deepEqual(before, { counts: { filled: 546 }, unfilled: [] });
    assert.deepEqual(broken, {
      counts: { filled: 543, missing: 1, failed: 1, outdated: 1 },
      unfilled: [
        { key: '1997-03-10', state: 'missing' },
        { key: '1997-08-14', state: 'failed' },
        { key: '1998-02-03', state: 'outdated' },
      ],
    });
    assert.deepEqual(findings, [{ key: '1997-03-10', ledgerRows: 1, tableRows: 0, state: 'missing' }]);
    assert.deepEqual([result.total, result.filled, result.failed], [3, 3, 0]);
    assert.deepEqual(healed, { counts: { filled: 546 }, unfilled: [] });
    // Each run fills one by an older query; the second all dates before and three by its heal, and perhaps what the first had begun.
    const { fills } = report.ledger;
    assert.ok([1092 + 1 + 546 + 1 + 3, 1092 + 1 + 546 + 1 + 3 + 1].includes(fills), `${fills} fills`);
    holdsTheTables(report, fills);
    nothingRuns(project);
  });

  it('stops everything where it is stopped half-way', async () => {
    const demo = startRepave(project, ['demo'], await theirEnvironment());
    await demo.says(/A worker runs/);
    demo.process.kill('SIGINT');
    const { code, stderr } = await demo.ended;
    assert.equal(code, 130);
    assert.match(stderr, /stopped half-way/);
    nothingRuns(project);
  });

  it('says what failed, ends with another code than 0 and stops everything', async () => {
    // A folder of its own: the other's may have a Temporal CLI that an earlier run has fetched.
    const bare = await createProject({});
    chmodSync(bare, 0o711);
    const { code, stderr, stdout } = await repave(bare, ['demo'], {
      PATH: '/nowhere',
      TEMPORAL_CLI_PATH: '/nowhere/temporal',
      HTTPS_PROXY: 'http://127.0.0.1:9',
    });
    assert.equal(code, 2);
    assert.match(stderr, /The demo failed[^]*No Temporal server could be started. Tried:/);
    assert.equal(stdout, '');
    nothingRuns(bare);
  });

  /** As on the machine of somebody who has servers of his own in the environment. */
  async function theirEnvironment(): Promise<Record<string, string>> {
    const { hostname, port, pathname, username, password } = new URL(theirs.ownerUrl);
    const profile = join(project, 'their-profile.toml');
    writeFileSync(profile, '[profile.default]\naddress = "127.0.0.1:9"\nnamespace = "theirs"\napi_key = "theirs"\n');
    return {
      DATABASE_URL: theirs.ownerUrl,
      PGHOST: hostname,
      PGPORT: port,
      PGDATABASE: pathname.slice(1),
      PGUSER: username,
      PGPASSWORD: password,
      TEMPORAL_ADDRESS: '127.0.0.1:9',
      TEMPORAL_NAMESPACE: 'theirs',
      TEMPORAL_CONFIG_FILE: profile,
      REPAVE_TASK_QUEUE: 'theirs',
      TEMPORAL_CLI_PATH: (await testTemporal()).cli,
    };
  }
});

/** Facts worked out from the file by other means (examples/cdnow/README.md). */
function holdsTheExample(ended: Ended, fills: number): void {
  assert.equal(ended.code, 0, ended.stderr);
  const { result, report } = document<DemoOutcome & Record<string, unknown>>(ended);
  holdsTheTables(report, fills);
  assert.equal(result.filled, 546);
}

function holdsTheTables(report: DemoReport, fills: number): void {
  assert.deepEqual(report.totals, { partitions: 546, orders: 69_659, units: 167_881, revenue: '2500315.63' });
  assert.deepEqual(report.firstDay, { date: '1997-01-01', orders: 212, revenue: '7515.35' });
  assert.equal(report.months.length, 18);
  assert.equal(report.differing, 0);
  assert.deepEqual(report.ledger, { filled: 546, failed: 0, fills, differing: 0 });
}

type Pictures = Readonly<
  Record<'before' | 'broken' | 'healed', { readonly counts: object; readonly unfilled: DemoPicture }>
>;

/** Every process that the demo wrote down is gone, and so is PostgreSQL. */
function nothingRuns(project: string): void {
  const state = join(project, '.repave', 'demo');
  const files = readdirSync(state, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.pid.json'));
  for (const file of files) {
    const identity = JSON.parse(readFileSync(join(state, file), 'utf8')) as ProcessIdentity;
    assert.ok(!runs(identity), `${file}: pid ${identity.pid} still runs`);
  }
  const log = readFileSync(join(state, 'postgres', 'postgres.log'), 'utf8');
  assert.match(log, /database system is shut down\s*$/);
  assert.ok(!existsSync(join(state, 'postgres', 'data', 'postmaster.pid')));
  assert.ok(!existsSync(join(state, 'demo.lock')));
  assert.ok(identify(process.pid), 'a process that runs is seen to run');
}

async function checksum(database: TestDatabase): Promise<string> {
  const [row] = await database.sql<{ sum: string }>(`
    SELECT md5(string_agg(s::text, ',' ORDER BY s.id)) ||
           (SELECT string_agg(m::text, ',') FROM sales_summary m) ||
           (SELECT string_agg(relname::text || relkind::text, ',' ORDER BY relname) FROM pg_class
             WHERE relnamespace::regnamespace::text NOT LIKE 'pg_%' AND relnamespace <> 'information_schema'::regnamespace) AS sum
    FROM sales s`);
  assert.ok(row?.sum);
  return row.sum;
}
