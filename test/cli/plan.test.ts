import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { loadPipeline } from '../../src/pipeline/load.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { document, makeProject, repave, SALES, SALES_SUMMARY } from './repave.js';

interface PlanDocument {
  readonly version: number;
  readonly pipeline: string;
  readonly first: string;
  readonly last: string;
  readonly total: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
  readonly partitions: readonly {
    readonly key: string;
    readonly reason: string;
    readonly rows?: number;
    readonly filledAt?: string;
  }[];
}

const JANUARY = ['plan', 'sales_summary', '--from', '1997-01-01', '--to', '1997-01-31'];

describe('repave plan', function () {
  this.timeout(600_000);
  let project: string;
  let database: TestDatabase;
  let env: Record<string, string>;

  before(async () => {
    project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY });
    database = await createTestDatabase();
    await database.sql(SALES);
    env = { DATABASE_URL: database.url };
  });
  after(async () => {
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  it('lists 31 partitions with their reason and writes nothing, without a Temporal server', async () => {
    const { code, stdout, stderr } = await repave(project, JANUARY, env);
    assert.equal(code, 0, stderr);
    const [heading, ...rows] = stdout.trimEnd().split('\n');
    assert.equal(heading, 'partition\treason\trows now\tfilled');
    assert.equal(rows.length, 31);
    assert.match(rows[0] ?? '', /^1997-01-01\tmissing/);
    assert.match(rows[30] ?? '', /^1997-01-31\tmissing/);
    assert.match(stderr, /31 partitions to fill \(31 missing\)/);
    for (const table of [
      'repave.backfill',
      'repave.fill',
      'repave.partition',
      'repave.claim',
      'repave.pipeline',
      'sales_summary',
    ]) {
      assert.deepEqual(await database.sql(`SELECT count(*)::int AS rows FROM ${table}`), [{ rows: 0 }], table);
    }
  });

  it('is one JSON document on standard output', async () => {
    const plan = document<PlanDocument>(await repave(project, [...JANUARY, '--json'], env));
    assert.equal(plan.version, 1);
    assert.deepEqual(
      [plan.pipeline, plan.first, plan.last, plan.total],
      ['sales_summary', '1997-01-01', '1997-01-31', 31],
    );
    assert.equal(plan.counts.missing, 31);
    assert.deepEqual(plan.partitions[30], { key: '1997-01-31', reason: 'missing' });
  });

  it('goes by the states of the ledger, and by the pipeline as workers have registered it', async () => {
    await database.sql(
      `INSERT INTO repave.pipeline (name, target, partition_column, by, zone, fingerprint, start)
       VALUES ('sales_summary', 'public.sales_summary', 'sale_date', 'day', 'UTC', 'v1:registered', '1997-01-01')`,
    );
    await database.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, failed_at, failure_type, failure_message, run, attempt, fence)
       VALUES ('sales_summary', '1997-01-02', 'filled', 1, 'v1:registered', now(), NULL, NULL, NULL, 'r', 1, 1),
              ('sales_summary', '1997-01-03', 'filled', 7, 'v1:older', now(), NULL, NULL, NULL, 'r', 1, 2),
              ('sales_summary', '1997-01-04', 'failed', NULL, NULL, NULL, now(), 'CheckFailed', 'rows', 'r', 1, 3)`,
    );
    try {
      const ended = await repave(project, ['plan', 'sales_summary', '1997-01-01..1997-01-04', '--json'], env);
      const { partitions, notes } = document<PlanDocument>(ended);
      const ofNow = partitions.map(({ filledAt, ...partition }) => {
        assert.equal(filledAt !== undefined, partition.rows !== undefined);
        return partition;
      });
      assert.deepEqual(ofNow, [
        { key: '1997-01-01', reason: 'missing' },
        { key: '1997-01-02', reason: 'filled', rows: 1 },
        { key: '1997-01-03', reason: 'outdated', rows: 7 },
        { key: '1997-01-04', reason: 'failed' },
      ]);
      assert.match(
        notes.join(),
        /another version of sales_summary than pipelines\/sales_summary\.sql.*registered at .*Start them again/,
      );
      const chosen = await repave(
        project,
        ['plan', 'sales_summary', '1997-01-01..1997-01-04', '--only', 'failed,outdated', '--json'],
        env,
      );
      assert.deepEqual(
        document<PlanDocument>(chosen).partitions.map(({ key }) => key),
        ['1997-01-03', '1997-01-04'],
      );
      const nowhere = makeProject();
      const bare = await repave(nowhere, ['plan', 'sales_summary', '1997-01-03', '--json'], env);
      rmSync(nowhere, { recursive: true, force: true });
      assert.equal(bare.code, 0, 'the ledger is enough where no files are at hand');
      const [only] = document<PlanDocument>(bare).partitions;
      assert.deepEqual([only?.key, only?.reason, only?.rows], ['1997-01-03', 'outdated', 7]);
    } finally {
      await database.sql('DELETE FROM repave.pipeline');
      await database.sql('DELETE FROM repave.partition');
    }
  });

  it('goes by the start that workers have registered, as a backfill does, and says that the file has another', async () => {
    const { fingerprint } = await loadPipeline(join(project, 'pipelines'), 'sales_summary');
    await database.sql(
      `INSERT INTO repave.pipeline (name, target, partition_column, by, zone, fingerprint, start)
       VALUES ('sales_summary', 'public.sales_summary', 'sale_date', 'day', 'UTC', $1, '1997-01-01')`,
      [fingerprint],
    );
    const later = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY.replace('1997-01-01', '1997-02-01') });
    try {
      const ended = await repave(later, ['plan', 'sales_summary', '1997-01-02', '--json'], env);
      assert.equal(ended.code, 0, ended.stderr);
      const { total, notes } = document<PlanDocument>(ended);
      assert.equal(total, 1);
      assert.match(notes.join(), /another start \(1997-01-01\)/);
      const same = document<PlanDocument>(
        await repave(project, ['plan', 'sales_summary', '1997-01-02', '--json'], env),
      );
      assert.deepEqual(same.notes, []);
    } finally {
      rmSync(later, { recursive: true, force: true });
      await database.sql('DELETE FROM repave.pipeline');
    }
  });

  it('says what it leaves out, and takes any set in any order', async () => {
    const words = [
      'plan',
      'sales_summary',
      '1997-01-05',
      '1996-12-30..1997-01-02',
      '--order',
      'newest-first',
      '--json',
    ];
    const { partitions, notes } = document<PlanDocument>(await repave(project, words, env));
    assert.deepEqual(
      partitions.map(({ key }) => key),
      ['1997-01-05', '1997-01-02', '1997-01-01'],
    );
    assert.match(notes.join(), /2 .*1997-01-01/);
  });

  it('plans against a database that has no ledger yet, and says so', async () => {
    const bare = await createTestDatabase({ ledger: false });
    try {
      const ended = await repave(project, [...JANUARY, '--json'], { DATABASE_URL: bare.url });
      assert.equal(ended.code, 0, ended.stderr);
      const { total, notes } = document<PlanDocument>(ended);
      assert.equal(total, 31);
      assert.match(notes.join(), /repave migrate/);
    } finally {
      await bare.drop();
    }
  });
});
