import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '@temporalio/client';
import { until } from '../chaos/until.js';
import { BAD_AND_BRAKE, dailyPipeline } from '../cli/days-that-fail.js';
import { type Ended, makeProject, repave, type Running, startRepave } from '../cli/repave.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { testTemporal } from '../support/temporal.js';
import { testClient } from '../support/workflow.js';

const page = readFileSync(fileURLToPath(new URL('../../docs/at-3-am.md', import.meta.url)), 'utf8');

/** Every command of the page, from its blocks and from within its lines; those with `…` are shapes, not commands. */
const commands = new Set(
  [...page.matchAll(/^(repave [a-z].*)$|`(repave [a-z][^`]*)`/gm)]
    .map(([, block, inline]) => (block ?? inline ?? '').trim())
    .filter((command) => !command.includes('…')),
);

/** The page's pipeline under a name of the test's own, since ids of workflows hold it. */
const PIPELINE = `sales_${randomBytes(4).toString('hex')}`;
const BACKFILL = `backfill/${PIPELINE}/1997-01-01..1997-01-31`;

const TABLES = `CREATE TABLE sales_summary (sale_date date NOT NULL, orders bigint NOT NULL); ${BAD_AND_BRAKE}`;
const SQL = dailyPipeline('sales_summary', 'sale_date', 'orders', '1997-01-01');

describe('the page for 3 a.m.', function () {
  this.timeout(600_000);
  let project: string;
  let database: TestDatabase;
  let env: Record<string, string>;
  let worker: Running | undefined;
  let temporal: Client;
  const tried = new Set<string>();

  before(async () => {
    project = makeProject({ [`pipelines/${PIPELINE}.sql`]: SQL });
    database = await createTestDatabase();
    await database.sql(TABLES);
    await database.sql(
      `GRANT SELECT ON bad, brake TO ${database.workerRole}; GRANT SELECT, INSERT, DELETE ON sales_summary TO ${database.workerRole}`,
    );
    env = {
      DATABASE_URL: database.url,
      REPAVE_MIGRATE_URL: database.ownerUrl,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      REPAVE_TASK_QUEUE: `queue-${PIPELINE}`,
      REPAVE_SHUTDOWN_GRACE: '0',
    };
    temporal = await testClient();
  });
  after(async () => {
    worker?.process.kill('SIGTERM');
    await worker?.ended;
    await temporal.connection.close();
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  it('says of a backfill that does not move that no worker runs', async () => {
    await database.sql(`INSERT INTO bad VALUES ('1997-01-02'), ('1997-01-03')`);
    const started = await typed('backfill', PIPELINE, '1997-01-01..1997-01-31', '--detach', ...PAUSES);
    assert.equal(started.code, 0, started.stderr);
    await saysInTime(() => run('repave status'), /No worker polls/);
    says(await run('repave doctor', 1), /no worker/);
    worker = start('repave worker');
    await until('a worker that polls', async () => !(await typed('doctor')).stdout.includes('no worker'));
  });

  it('leads out of a pause of its own', async () => {
    await until('a pause', async () => (await typed('status', BACKFILL)).stdout.includes('paused'));
    await saysInTime(() => run('repave status backfill/sales_summary/1997-01-01..1997-01-31'), /paused[^]*DataError/);
    says(await run('repave status sales_summary'), /1997-01-02[^]*DataError/);
    says(await run('repave plan sales_summary --only missing,failed'), /1997-01-03\s+failed/);
    await database.sql(`DELETE FROM bad; INSERT INTO brake VALUES ('1997-01-29')`);
    says(await run('repave retry sales_summary'), /filled again/);
    says(await run('repave resume sales_summary'), /resume|goes on/i);
    await until('all but the one that is held', async () => (await filled()) === 30);
  });

  it('watches, slows, pauses and goes on', async () => {
    const watched = start('repave watch backfill/sales_summary/1997-01-01..1997-01-31');
    await watched.says(/30 of 31/);
    watched.process.kill('SIGINT');
    assert.equal((await watched.ended).code, 130);
    const short = start('repave watch sales_summary');
    await short.says(/30 of 31/);
    short.process.kill('SIGINT');
    await short.ended;
    says(await run('repave concurrency sales_summary 1'), /\b1\b/);
    says(await run('repave pause sales_summary --reason "replication lags, Kim"'), /paused/i);
    await saysInTime(() => typed('status', BACKFILL), /replication lags, Kim/);
    says(await run('repave concurrency sales_summary 4'), /\b4\b/);
    says(await run('repave resume sales_summary'), /resume|goes on/i);
  });

  it('stops one, and cancels another', async () => {
    says(await run('repave stop sales_summary'), /stop/i);
    await database.sql('DELETE FROM brake');
    await until('its end', async () => (await open()) === 0);
    assert.equal(await filled(), 31);
    // The ledger hears of it a moment before Temporal has ended it: till then another would join it.
    await until('its end in Temporal', async () => {
      const { status } = await temporal.workflow.getHandle(BACKFILL).describe();
      return status.name !== 'RUNNING';
    });

    await database.sql(`INSERT INTO brake VALUES ('1997-01-05')`);
    assert.equal((await typed('backfill', PIPELINE, '1997-01-01..1997-01-31', '--detach')).code, 0);
    await until('a fill that is held', async () => (await typed('status', BACKFILL)).stdout.includes('1997-01-05'));
    says(await run('repave cancel backfill/sales_summary/1997-01-01..1997-01-31'), /cancelled/);
    await database.sql('DELETE FROM brake');
    assert.equal(await open(), 0);
  });

  it('fills again what has failed, of a run that has ended, and what is wrong', async () => {
    await database.sql(`INSERT INTO bad VALUES ('1997-01-14')`);
    says(await run('repave backfill sales_summary 1997-01-01..1997-01-31 --canary 1', 1), /1997-01-14/);
    await database.sql('DELETE FROM bad');
    says(await run('repave history sales_summary 1997-01-14'), /DataError/);
    says(await run('repave retry backfill/sales_summary/1997-01-01..1997-01-31'), /new/i);
    says(await run('repave history sales_summary 1997-01-14'), /✓/);
    says(await run('repave try sales_summary 1997-01-14'), /rolled back/i);
    says(await run('repave backfill sales_summary 1997-01-14'), /1 of 1|filled/);
  });

  it('finds what somebody changed by hand, and says what is behind', async () => {
    await database.sql(`DELETE FROM sales_summary WHERE sale_date = '1997-01-20'`);
    says(await run('repave verify sales_summary --dry-run', 1), /1997-01-20[^]*missing[^]*Nothing was recorded/);
    says(await run('repave verify sales_summary', 1), /1997-01-20[^]*missing/);
    says(await run('repave history sales_summary 1997-01-20'), /verify found 0 rows in place of 1/);
    says(await typed('verify', PIPELINE), /1 partition found before .1997-01-20. and not filled since/);
    says(await run('repave backfill sales_summary 1997-01-01..1997-01-31 --only missing,outdated'), /1 of 1|filled/);
    says(await typed('verify', PIPELINE), /none differs/);
    says(await run('repave status --stale 6h', 1), /behind: 1997-02-01 is not filled, and ended/);
  });

  it('fills what is missing, failed or outdated, and shows how a plan has changed', async () => {
    const kept = await typed(
      'plan',
      PIPELINE,
      '--from',
      '1997-01-01',
      '--to',
      '1997-02-02',
      '--only',
      'missing,failed',
      '--json',
    );
    writeFileSync(join(project, 'plan.json'), kept.stdout);
    says(await run('repave plan sales_summary --only missing,failed --against plan.json', 1), /1997-02-03/);
    await database.sql(`UPDATE repave.pipeline SET start = '1997-01-01'`);
    const today = (): string => new Date().toISOString().slice(0, 10);
    const day = today();
    await lastDays();
    says(await run('repave backfill sales_summary --only failed,missing'), /filled/);
    const again = await run('repave backfill sales_summary --only missing,failed');
    // A day that has just ended is missing.
    says(again, day === today() ? /nothing|0 of 0|0 partitions/i : /filled|nothing/i);
    await database.sql(`UPDATE repave.partition SET fingerprint = 'older' WHERE key = '1997-01-20'`);
    says(await run('repave plan sales_summary --only outdated'), /1997-01-20\s+outdated/);
    says(await run('repave backfill sales_summary --only outdated'), /filled/);
  });

  it('looks at the set-up', async () => {
    says(await typed('doctor'), /✓/);
    says(await run('repave check'), new RegExp(PIPELINE));
    says(await run('repave pipelines'), new RegExp(PIPELINE));
    says(await run('repave prune --dry-run'), /repave\.fill|fill/);
  });

  it('has no other command', () => {
    assert.deepEqual(
      [...commands].filter((command) => !tried.has(command)),
      [],
    );
  });

  const PAUSES = ['--on-failure', 'pause', '--max-failures', '2'];

  /** A command as the page has it, and as the test types it. */
  function words(command: string): string[] {
    assert.ok(commands.has(command), `the page has no ${command}`);
    tried.add(command);
    return [...command.replaceAll('sales_summary', PIPELINE).matchAll(/"([^"]*)"|(\S+)/g)]
      .map(([, quoted, plain]) => quoted ?? plain ?? '')
      .slice(1);
  }

  const start = (command: string): Running => startRepave(project, words(command), env);
  const typed = (...given: string[]): Promise<Ended> => repave(project, given, env);

  async function run(command: string, code = 0): Promise<Ended> {
    const ended = await repave(project, words(command), env);
    assert.equal(ended.code, code, `${command}\n${ended.stdout}\n${ended.stderr}`);
    return ended;
  }

  function says({ stdout, stderr }: Ended, pattern: RegExp): void {
    assert.match(stdout + stderr, pattern);
  }

  /** Of a command that gives Temporal 2 s for its word, or a worker 5: on a slow machine not the first time. */
  async function saysInTime(command: () => Promise<Ended>, pattern: RegExp): Promise<void> {
    await until(String(pattern), async () => {
      const { stdout, stderr } = await command();
      return pattern.test(stdout + stderr);
    });
  }

  async function filled(): Promise<number> {
    const [row] = await database.sql<{ n: number }>('SELECT count(DISTINCT key)::int AS n FROM repave.fill');
    return row?.n ?? 0;
  }

  async function open(): Promise<number> {
    const [row] = await database.sql<{ n: number }>(
      'SELECT count(*)::int AS n FROM repave.backfill WHERE outcome IS NULL',
    );
    return row?.n ?? 0;
  }

  /** All days up to the newest count as filled, but for the first month and the last two days. */
  async function lastDays(): Promise<void> {
    await database.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
       SELECT name, to_char(day, 'YYYY-MM-DD'), 'filled', 1, fingerprint, now(), 'seed', 1, 0
         FROM repave.pipeline, generate_series(date '1997-02-01', now() AT TIME ZONE 'UTC' - interval '3 days', interval '1 day') AS day
       ON CONFLICT (pipeline, key) DO NOTHING`,
    );
  }
});
