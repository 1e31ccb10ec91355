import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import type { BackfillResult, Progress } from '../../src/contract.js';
import { until } from '../chaos/until.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { withClient } from '../support/template.js';
import { testTemporal } from '../support/temporal.js';
import {
  document,
  type Ended,
  makeProject,
  repave as runRepave,
  type Running,
  SALES,
  SALES_SUMMARY,
  startOnTerminal,
  startRepave,
} from './repave.js';

interface ResultDocument {
  readonly version: number;
  readonly id: string;
  readonly runId: string;
  readonly joined: boolean;
  readonly result: BackfillResult;
  readonly error?: { readonly type: string; readonly message: string };
}

/** A second pipeline, each of whose days takes as long as it is let. */
const SLOW = `-- repave
-- target: slow_summary
-- partition: { column: sale_date, by: day }
-- start: 1997-01-01
SELECT sold_on AS sale_date, count(*) AS orders, NULL::text AS note
FROM   sales, pg_sleep(600)
WHERE  sold_on >= :date AND sold_on < :end_date
GROUP  BY sold_on
`;

describe('repave backfill, watch, status, history, cancel and doctor', function () {
  this.timeout(600_000);
  let project: string;
  let database: TestDatabase;
  let env: Record<string, string>;
  let worker: Running;
  const repave = (...words: string[]): Promise<Ended> => runRepave(project, words, env);
  const prefix = randomBytes(4).toString('hex');

  before(async () => {
    project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY, 'pipelines/slow_summary.sql': SLOW });
    database = await createTestDatabase();
    await database.sql(`${SALES} CREATE TABLE slow_summary (sale_date date PRIMARY KEY, orders bigint, note text);`);
    env = {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      REPAVE_TASK_QUEUE: `cli-${prefix}`,
      REPAVE_SHUTDOWN_GRACE: '0',
    };
  });

  after(async () => {
    worker?.process.kill('SIGTERM');
    await worker?.ended;
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  it('doctor says that no worker polls, and ends with 1', async () => {
    const ended = await repave('doctor');
    assert.equal(ended.code, 1, ended.stdout + ended.stderr);
    assert.match(ended.stdout, /✓ PostgreSQL \d+.*\n/);
    assert.match(ended.stdout, /✓ ledger [0-9a-f-]{36}\n/);
    assert.match(ended.stdout, /✓ Temporal .*namespace default\n/);
    assert.match(ended.stdout, /✗ no worker/);
  });

  it('--detach starts it, says that no worker polls, and comes back', async () => {
    const ended = await repave('backfill', 'sales_summary', '1997-01-31', '--id', `${prefix}/detached`, '--detach');
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(ended.stdout, `${prefix}/detached\n`);
    assert.match(ended.stderr, /No worker polls the task queue cli-/);
    assert.match(ended.stderr, /repave watch/);
  });

  it('a follower says after a while that no worker polls; Ctrl-C leaves it running and says how to come back', async () => {
    const following = startRepave(
      project,
      ['backfill', 'sales_summary', '1997-01-31', '--id', `${prefix}/detached`],
      env,
    );
    await following.says(/No worker polls/);
    following.process.kill('SIGINT');
    const { code, stdout, stderr } = await following.ended;
    assert.equal(code, 130);
    assert.equal(stdout, '');
    assert.match(stderr, /Joined/);
    assert.match(stderr.trimEnd().split('\n').at(-1) ?? '', new RegExp(`repave watch ${prefix}/detached`));
  });

  it('watch finds by its id what no ledger knows yet; cancel says after a while that no worker polls', async () => {
    const watching = startRepave(project, ['watch', `${prefix}/detached`], env);
    await watching.says(/No worker polls/);
    watching.process.kill('SIGINT');
    assert.equal((await watching.ended).code, 130);
    await repave('backfill', 'sales_summary', '1997-01-30', '--id', `${prefix}/unwanted`, '--detach');
    const cancelling = startRepave(project, ['cancel', `${prefix}/unwanted`], env);
    await cancelling.says(/waiting[^]*No worker polls/);
    cancelling.process.kill('SIGINT');
    await cancelling.ended;
  });

  it('tells what Temporal refuses as a wrong request', async () => {
    const ended = await repave('backfill', 'sales_summary', '1997-01-31', '--id', 'x'.repeat(2000), '--detach');
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(ended.stderr, /Temporal refused the request \(INVALID_ARGUMENT\): .*length/i);
  });

  it('cancel leaves alone what is no workflow of Repave', async () => {
    const { address } = await testTemporal();
    const connection = await Connection.connect({ address });
    const stranger = await new Client({ connection }).workflow.start('stranger', {
      workflowId: `${prefix}/stranger`,
      taskQueue: `${prefix}-nobody`,
    });
    try {
      const ended = await repave('cancel', `${prefix}/stranger`);
      assert.equal(ended.code, 2, ended.stdout);
      assert.match(ended.stderr, /type stranger/);
      assert.equal((await stranger.describe()).status.name, 'RUNNING');
    } finally {
      await stranger.terminate();
      await connection.close();
    }
  });

  it('a worker fills what waited for it, and watch tells how it ended', async () => {
    worker = startRepave(project, ['worker'], env);
    await worker.says(/Worker is ready/);
    const ended = await repave('watch', `${prefix}/detached`, '--json');
    assert.equal(ended.code, 0, ended.stderr);
    const lines = ended.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { version: number; progress?: Progress; result?: BackfillResult });
    assert.ok(lines.every(({ version }) => version === 1));
    assert.equal(lines.at(-1)?.result?.filled, 1);
  });

  it('fills to the end, with the result on standard output and the rest beside it', async () => {
    const ended = await repave('backfill', 'sales_summary', '1997-01-01..1997-01-10', '--id', `${prefix}/ten`);
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(ended.stdout, '✓ sales_summary 1997-01-01..1997-01-10: 10 of 10 partitions filled, 10 rows\n');
    assert.match(ended.stderr, new RegExp(`^Started ${prefix}/ten\n`));
    assert.deepEqual(
      await database.sql(
        'SELECT count(*)::int AS days, sum(orders)::int AS orders FROM sales_summary WHERE sale_date <= $1',
        ['1997-01-10'],
      ),
      [{ days: 10, orders: 20 }],
    );
  });

  it('says before it starts that workers fill by another version than the file here', async () => {
    const edited = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY.replace('count(*)', 'count(*) + 1') });
    try {
      const words = ['backfill', 'sales_summary', '1997-01-01', '--id', `${prefix}/edited`];
      const { stderr } = await runRepave(edited, words, env);
      assert.match(
        stderr,
        /^Workers have another version of sales_summary .*they fill by theirs\. Start them again .*\nStarted /,
      );
      const { notes } = document<{ notes: string[] }>(await runRepave(edited, [...words, '--json'], env));
      assert.match(notes.join(), /another version of sales_summary/);
    } finally {
      rmSync(edited, { recursive: true, force: true });
    }
  });

  it('ends with 1 where some failed, names the first and says what to do next', async () => {
    const ended = await repave(
      'backfill',
      'sales_summary',
      '--from',
      '1997-01-11',
      '--to',
      '1997-01-14',
      '--id',
      `${prefix}/hole`,
    );
    assert.equal(ended.code, 1, ended.stderr);
    assert.match(
      ended.stdout,
      /^✗ sales_summary 1997-01-11\.\.1997-01-14: 3 of 4 partitions filled, 1 failed, 3 rows\n {2}1997-01-13 {2}CheckFailed: /,
    );
    assert.doesNotMatch(ended.stderr, /CheckFailed/, 'each failure is written once');
    assert.match(ended.stderr, new RegExp(`repave retry ${prefix}/hole`));
  });

  it('is one JSON document, with the result and the error', async () => {
    const ended = await repave(
      'backfill',
      'sales_summary',
      '--from',
      '1997-01-13',
      '--to',
      '1997-01-13',
      '--id',
      `${prefix}/again`,
      '--json',
    );
    assert.equal(ended.code, 1, ended.stderr);
    const { version, id, joined, result, error } = document<ResultDocument>(ended);
    assert.deepEqual([version, id, joined], [1, `${prefix}/again`, false]);
    assert.deepEqual([result.total, result.filled, result.failed], [1, 0, 1]);
    assert.equal(error?.type, 'BackfillIncomplete');
  });

  it('only takes what is failed, and fills it once its source is there', async () => {
    await database.sql(`INSERT INTO sales VALUES ('1997-01-13', 1)`);
    const ended = await repave('backfill', 'sales_summary', '--only', 'failed', '--id', `${prefix}/mend`, '--json');
    assert.equal(ended.code, 0, ended.stderr);
    const { result } = document<ResultDocument>(ended);
    assert.deepEqual([result.first, result.last, result.filled], ['1997-01-13', '1997-01-13', 1]);
    const nothing = await repave('backfill', 'sales_summary', '--only', 'failed', '--id', `${prefix}/mend`, '--json');
    assert.equal(nothing.code, 0, 'nothing to do is done');
    assert.equal(document<ResultDocument>(nothing).result.total, 0);
  });

  it('--dry-run is the plan, and starts nothing', async () => {
    const ended = await repave('backfill', 'sales_summary', '1997-01-01..1997-01-03', '--dry-run', '--json');
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(document<{ total: number }>(ended).total, 3);
    assert.doesNotMatch(ended.stderr, /Started/);
  });

  it('history tells every fill and failure of one partition, the newest first', async () => {
    const ended = await repave('history', 'sales_summary', '1997-01-13', '--json');
    assert.equal(ended.code, 0, ended.stderr);
    const { entries } = document<{ entries: { kind: string; type?: string; rows?: number }[] }>(ended);
    assert.deepEqual(
      entries.map(({ kind, type, rows }) => [kind, type ?? rows]),
      [
        ['fill', 1],
        ['failure', 'CheckFailed'],
        ['failure', 'CheckFailed'],
      ],
    );
    const plain = await repave('history', 'sales_summary', '1997-01-13');
    assert.match(
      plain.stdout,
      /^sales_summary 1997-01-13 {2}1997-01-13T00:00:00Z to 1997-01-14T00:00:00Z \(UTC\)\n✓ .*\n {2}started by .*\n {2}1 row in place of 0, in .* s\n/,
    );
    assert.equal((await repave('history', 'sales_summary', '1997-13-01')).code, 2);
  });

  it('status counts a pipeline’s partitions by state and lists its backfills', async () => {
    const ended = await repave('status', 'sales_summary', '--json');
    assert.equal(ended.code, 0, ended.stderr);
    const { pipelines, backfills } = document<{
      pipelines: { name: string; filled: number; failed: number; outdated: number; missing: number; newest: string }[];
      backfills: { id: string; state: string; filled: number }[];
    }>(ended);
    assert.equal(pipelines.length, 1);
    const [{ missing, ...counts }] = pipelines as [(typeof pipelines)[number]];
    assert.deepEqual(
      [counts.name, counts.filled, counts.failed, counts.outdated, counts.newest],
      ['sales_summary', 15, 0, 0, '1997-01-31'],
    );
    assert.ok(missing > 10_000);
    assert.deepEqual(
      backfills
        .map(({ id, state }) => [id, state])
        .reverse()
        .filter(([id]) => id !== `${prefix}/edited`)
        .slice(0, 3),
      [
        [`${prefix}/detached`, 'done'],
        [`${prefix}/ten`, 'done'],
        [`${prefix}/hole`, 'incomplete'],
      ],
    );
    const one = await repave('status', `${prefix}/hole`);
    assert.match(one.stdout, /incomplete\n {2}3 of 4 partitions filled, 1 failed/);
    assert.equal((await repave('status', 'nobody')).code, 2);
    const unknown = await repave('watch', 'nobody');
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /no pipeline and no backfill "nobody".*sales_summary, slow_summary/);
    assert.match((await repave('watch', 'sales_summary')).stderr, /No backfill of sales_summary runs/);
  });

  it('status counts the failures it does not list, and asks Temporal how a run ended that the ledger has open', async () => {
    await database.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, failed_at, failure_type, failure_message, run, attempt, fence)
       SELECT 'slow_summary', '1997-03-' || lpad(day::text, 2, '0'), 'failed', now(), 'CheckFailed', 'rows', 'r', 1, day
         FROM generate_series(1, 12) AS day`,
    );
    await database.sql('UPDATE repave.backfill SET outcome = NULL WHERE id = $1', [`${prefix}/ten`]);
    try {
      assert.match((await repave('status', 'slow_summary')).stdout, /1997-03-10 .*\n {2}and 2 more/);
      const json = document<{ failed: unknown[]; failedInAll: number }>(
        await repave('status', 'slow_summary', '--json'),
      );
      assert.deepEqual([json.failed.length, json.failedInAll], [10, 12]);
      // Temporal has 2 s for it: on a slow machine not the first time.
      const state = await until('how it ended', async () => {
        const { backfills } = document<{ backfills: { state: string }[] }>(
          await repave('status', `${prefix}/ten`, '--json'),
        );
        return backfills[0]?.state !== 'unknown' && backfills[0]?.state;
      });
      assert.equal(state, 'done');
    } finally {
      await database.sql(`DELETE FROM repave.partition WHERE pipeline = 'slow_summary'`);
      await database.sql(`UPDATE repave.backfill SET outcome = 'done' WHERE id = $1`, [`${prefix}/ten`]);
    }
  });

  it('a live view ends with Ctrl-C; cancel waits until nothing of the backfill is left; its follower ends with 1', async () => {
    const following = startRepave(
      project,
      ['backfill', 'slow_summary', '1997-01-01..1997-01-06', '--id', `${prefix}/slow`],
      env,
    );
    // A superuser sees what every role's sessions run.
    const asleep = (): Promise<number> =>
      withClient(database.superuserUrl, async (superuser) => {
        const { rows } = await superuser.query<{ n: number }>(
          `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND query ~ 'pg_sleep.600' AND pid <> pg_backend_pid()`,
        );
        return rows[0]?.n ?? 0;
      });
    while (following.process.exitCode === null && (await asleep()) === 0)
      await new Promise((resolve) => setTimeout(resolve, 100));

    const running = await until('what runs', async () => {
      const { backfills } = document<{ backfills: { id: string; state: string; progress?: Progress }[] }>(
        await repave('status', `${prefix}/slow`, '--json'),
      );
      return (backfills[0]?.progress?.running.length ?? 0) > 0 && backfills[0];
    });
    assert.equal(running.state, 'running');

    const words = ['watch', `${prefix}/slow`];
    const terminal = startOnTerminal(project, words, env);
    await terminal.says(/1997-01-01.*attempt \d/);
    terminal.process.stdin?.write('\x03');
    const left = await terminal.ended;
    assert.equal(left.code, 130, left.stdout);
    assert.match(left.stdout, /It goes on/);

    const named = await repave('cancel', 'slow_summary');
    assert.equal(named.code, 2, named.stdout);
    assert.match(named.stderr, new RegExp(`slow_summary is a pipeline.*\\n  repave cancel ${prefix}/slow\\n$`));
    const cancelled = await repave('cancel', `${prefix}/slow`);
    assert.equal(cancelled.code, 0, cancelled.stderr);
    assert.match(cancelled.stdout, /is cancelled/);
    assert.equal(await asleep(), 0);
    const followed = await following.ended;
    assert.equal(followed.code, 1);
    assert.match(followed.stderr, /Cancelled/);
    const again = await repave('cancel', `${prefix}/slow`);
    assert.equal(again.code, 0, 'over is over');
    assert.match(again.stdout, /has ended as cancelled: there is nothing to cancel/);
    assert.match((await repave('cancel', `${prefix}/ten`)).stdout, /has ended as completed/);
    assert.match((await repave('cancel', 'slow_summary')).stderr, /is a pipeline: .*None of slow_summary runs/);
    const nobody = await repave('cancel', `${prefix}/nobody`);
    assert.equal(nobody.code, 2);
    assert.match(nobody.stderr, /Temporal knows no run of that id/);
  });

  it('check asks the database, and finds what a fill would fail on', async () => {
    const fine = await repave('check', '--json');
    assert.equal(fine.code, 0, fine.stdout);
    const renamed = makeProject({ 'pipelines/summary.sql': SALES_SUMMARY });
    const found = await runRepave(renamed, ['check'], env);
    rmSync(renamed, { recursive: true, force: true });
    assert.equal(found.code, 1, found.stdout);
    assert.match(found.stdout, /DELETE FROM repave\.pipeline WHERE name = 'sales_summary'/);
    await database.sql('ALTER TABLE slow_summary DROP COLUMN note');
    const ended = await repave('check');
    assert.equal(ended.code, 1);
    assert.match(ended.stdout, /✓ sales_summary\n✗ slow_summary\n {2}.*note/);
  });

  it('doctor finds a role that lacks a privilege, with the grant to give', async () => {
    await database.sql(`REVOKE INSERT ON repave.fill FROM ${database.workerRole}`);
    const ended = await repave('doctor', '--json');
    assert.equal(ended.code, 1);
    const { ok, findings } = document<{ ok: boolean; findings: { state: string; text: string; advice?: string }[] }>(
      ended,
    );
    assert.equal(ok, false);
    const wrong = findings.filter(({ state }) => state === 'wrong');
    assert.ok(
      wrong.some(({ advice }) => (advice ?? '').startsWith('GRANT SELECT, INSERT ON repave.fill')),
      JSON.stringify(wrong),
    );
    assert.ok(wrong.some(({ text }) => text === 'pipeline slow_summary'));
    assert.ok(findings.some(({ state, text }) => state === 'fine' && text.includes('worker polls')));
  });

  it('the worker ends with 0 on SIGTERM', async () => {
    worker.process.kill('SIGTERM');
    assert.equal((await worker.ended).code, 0);
  });
});
