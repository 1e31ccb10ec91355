import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import type { BackfillInput } from '../../src/contract.js';
import { Installation } from '../chaos/installation.js';
import { document, repave, type Ended } from '../cli/repave.js';
import { testTemporal } from '../support/temporal.js';
import { createNamespace } from './temporal-cli.js';

const PIPELINE = `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- start: 2024-03-01
-- checks: [{ rows: { min: 1 } }]
SELECT sold_on AS day, count(*) AS n FROM sales WHERE sold_on >= :date AND sold_on < :end_date GROUP BY sold_on
`;

/** Sales on each day of March 2024 but three. */
const TABLES = `
  CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL);
  CREATE TABLE sales (sold_on date NOT NULL);
  INSERT INTO sales SELECT day FROM generate_series(date '2024-03-01', '2024-03-31', '1 day') AS day;
  DELETE FROM sales WHERE sold_on IN ('2024-03-05', '2024-03-10', '2024-03-15');`;

const FAILED = ['2024-03-05', '2024-03-10', '2024-03-15'];
const NEVER_RUN = ['2024-03-20', '2024-03-30'];
/** 30 days but the two that are never run. */
const RUN = ['2024-03-01..2024-03-19', '2024-03-21..2024-03-29'];
const DAYS = '2024-03-01..2024-03-30';

interface PlanDocument {
  readonly id: string;
  readonly total: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly partitions: readonly { readonly key: string; readonly reason: string; readonly rows?: number }[];
  readonly estimate: { readonly seconds: number } | null;
  readonly input: BackfillInput;
}

describe('a plan binds the backfill that is started with its id', function () {
  this.timeout(300_000);
  let installation: Installation;
  let env: Record<string, string>;

  before(async () => {
    const namespace = await createNamespace();
    installation = await Installation.open({ pipelines: { 'daily.sql': PIPELINE }, tables: TABLES, namespace });
    const { database, taskQueue } = installation;
    // The worker lives in one zone, whoever plans in another.
    await installation.startWorker({ env: { TZ: 'Asia/Kolkata' } });
    env = {
      TZ: 'America/New_York',
      DATABASE_URL: database.url,
      REPAVE_TASK_QUEUE: taskQueue,
      TEMPORAL_NAMESPACE: namespace,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
    };
    const begun = await installation.client.backfill({ pipeline: 'daily', keys: RUN });
    await assert.rejects(begun.result(), { type: 'BackfillIncomplete' });
    await database.sql('INSERT INTO sales SELECT unnest($1::date[])', [FAILED]);
  });
  after(() => installation.close());

  const run = (...words: string[]): Promise<Ended> => repave(installation.project, words, env);
  const plan = async (...words: string[]): Promise<PlanDocument> => {
    const ended = await run('plan', 'daily', ...words, '--json');
    assert.equal(ended.code, 0, ended.stderr);
    return document<PlanDocument>(ended);
  };
  const versions = async (): Promise<Map<string, string>> => {
    const rows = await installation.database.sql<{ day: string; version: string }>(
      'SELECT day::text, xmin::text AS version FROM daily',
    );
    return new Map(rows.map(({ day, version }) => [day, version]));
  };
  const fill = async (key: string): Promise<void> => {
    await (await installation.client.partition({ pipeline: 'daily', key })).result();
  };

  it('fills exactly the 3 failed and the 2 that were never run, as planned in another time zone', async () => {
    const planned = await plan(DAYS, '--only', 'failed,missing');
    const wanted = [...FAILED, ...NEVER_RUN].sort();
    assert.deepEqual(
      planned.partitions.map(({ key, reason }) => `${key} ${reason}`),
      wanted.map((key) => `${key} ${FAILED.includes(key) ? 'failed' : 'missing'}`),
    );
    assert.ok(planned.estimate && planned.estimate.seconds > 0);
    const before = await versions();
    assert.equal(before.size, 25);
    const { pipeline, from, to, only, plan: id, ...rest } = planned.input;
    assert.deepEqual([pipeline, `${from}..${to}`, rest], ['daily', DAYS, {}]);
    const ended = await run('backfill', 'daily', DAYS, '--only', only?.join(',') ?? '', '--plan', id ?? '', '--json');
    assert.equal(ended.code, 0, ended.stderr);
    const { runId } = document<{ runId: string }>(ended);
    const after = await versions();
    assert.deepEqual(
      [...after]
        .filter(([day, version]) => before.get(day) !== version)
        .map(([day]) => day)
        .sort(),
      wanted,
    );
    const kept = await installation.database.sql<{ key: string }>(
      'SELECT key FROM repave.run_key WHERE run = $1 ORDER BY seq',
      [runId],
    );
    assert.deepEqual(
      kept.map(({ key }) => key),
      wanted,
    );
    const fills = await installation.database.sql<{ key: string; by: string | null }>(
      'SELECT key, started_by AS by FROM repave.fill WHERE backfill = $1 ORDER BY key',
      [runId],
    );
    assert.deepEqual(
      fills.map(({ key }) => key),
      wanted,
    );
    assert.ok(
      fills.every(({ by }) => by),
      'each fill says who started its backfill',
    );
  });

  it('keeps its id where only the data changed, and is refused, with the difference, where a state did', async () => {
    const days = '2024-03-29..2024-03-31';
    const planned = await plan(days);
    assert.deepEqual(planned.counts, { failed: 0, missing: 1, outdated: 0, changed: 0, filled: 2 });
    const file = join(installation.project, 'kept.json');
    writeFileSync(file, JSON.stringify({ version: 1, pipeline: 'daily', ...planned }));

    await installation.database.sql(`INSERT INTO sales VALUES ('2024-03-29')`);
    await fill('2024-03-29');
    assert.deepEqual(
      await installation.database.sql(
        'SELECT started_by = $1 AS known FROM repave.fill WHERE backfill IS NULL ORDER BY id DESC LIMIT 1',
        [installation.temporal.options.identity],
      ),
      [{ known: true }],
      'a partition started alone says who started it',
    );
    const dryRun = await (await installation.client.backfill({ ...planned.input, dryRun: true })).result();
    assert.deepEqual([dryRun.plan, dryRun.counts], [planned.id, planned.counts]);

    await fill('2024-03-31');
    const before = await versions();
    const begun = await installation.client.backfill(planned.input);
    await assert.rejects(begun.result(), (error: Error & { type?: string }) => {
      assert.equal(error.type, 'PlanChanged');
      assert.match(error.message, /Then: 3 partitions \(1 missing, 2 filled\); now: 3 partitions \(3 filled\)\./);
      assert.match(error.message, /The query is the same\. Nothing was begun/);
      return true;
    });
    assert.deepEqual(await versions(), before);
    assert.deepEqual(await installation.database.sql('SELECT FROM repave.backfill WHERE run = $1', [begun.runId]), []);

    const against = await run('plan', 'daily', '--against', file, '--json');
    assert.equal(against.code, 1, against.stderr);
    const { queryChanged, came, went, changed } = document(against);
    assert.deepEqual(
      { queryChanged, came, went, changed },
      {
        queryChanged: false,
        came: [],
        went: [],
        changed: [{ key: '2024-03-31', from: 'missing', to: 'filled' }],
      },
    );
  });

  it('keeps who started it as it may be shown, whatever a client calls itself', async () => {
    const { temporal, taskQueue, database } = installation;
    const { connection, options } = temporal;
    const identity = `ana\u0000@laptop\n\u001b[31m ${'x'.repeat(300)}`;
    const client = new Client({ connection, namespace: options.namespace, identity });
    const args = [{ pipeline: 'daily', from: '2024-03-02', to: '2024-03-02' }];
    const run = await client.workflow.start('backfill', { taskQueue, workflowId: 'by-someone', args });
    assert.equal(((await run.result()) as { filled: number }).filled, 1);
    const known = `ana @laptop [31m ${'x'.repeat(300)}`.slice(0, 200);
    const id = run.firstExecutionRunId;
    for (const table of ['backfill WHERE run', 'fill WHERE backfill'])
      assert.deepEqual(await database.sql(`SELECT started_by FROM repave.${table} = $1`, [id]), [
        { started_by: known },
      ]);
  });

  it('never takes 5,000 at once: refused, and said, whoever asks', async () => {
    const before = await versions();
    const ended = await run('backfill', 'daily', DAYS, '--concurrency', '5000', '--json');
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /--concurrency is 5000: expected a whole number from 1 to 100/);
    const expected = /concurrency is 5000 \(a number\): expected a whole number from 1 to 100/;
    // As any other system would, past command and client.
    const raw = await installation.temporal.workflow.start('backfill', {
      taskQueue: installation.taskQueue,
      workflowId: 'by-another-system',
      args: [{ pipeline: 'daily', from: '2024-03-01', to: '2024-03-30', concurrency: 5000 }],
    });
    await assert.rejects(raw.result(), (error: Error & { cause?: { type?: string; message?: string } }) => {
      assert.equal(error.cause?.type, 'InvalidInput');
      assert.match(error.cause?.message ?? '', expected);
      return true;
    });
    assert.deepEqual(await versions(), before);
  });
});
