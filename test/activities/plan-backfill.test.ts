import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { ActivityDeps } from '../../src/activities/activity-deps.js';
import type { PlannedBackfill } from '../../src/activities/messages.js';
import { nextKeys, PAGE_SIZE } from '../../src/activities/next-keys.js';
import { planBackfill } from '../../src/activities/plan-backfill.js';
import type { BackfillInput } from '../../src/contract.js';
import type { Database } from '../../src/warehouse/database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { sqlPipeline, withWorker } from '../support/fill.js';

const pipeline = sqlPipeline('SELECT :start AS day', {
  name: 'hourly',
  partition: { column: 'day', by: 'hour', zone: 'UTC' },
  start: '2012-01-01T00Z',
});
/** 100,000 hours. */
const LARGE = { from: '2012-01-01T00Z', to: '2023-05-29T15Z' };

describe('the plan of a backfill', function () {
  this.timeout(300_000);
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    // Every 80th of 100,000 is missing, every 100th has failed and every 400th is both, which is missing.
    await test.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
       SELECT 'hourly', to_char(timestamp '2012-01-01' + n * interval '1 hour', 'YYYY-MM-DD"T"HH24"Z"'),
              CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'filled' END, 1, $1, now(), 'r', 1, n
         FROM generate_series(0, 99999) n WHERE n % 80 <> 0`,
      [pipeline.fingerprint],
    );
  });
  after(() => test.drop());

  const depsOf = (database: Database): ActivityDeps => ({
    pipelines: new Map([[pipeline.name, pipeline]]),
    broken: new Map(),
    unregistered: new Map(),
    registerAgain: async () => undefined,
    withDatabase: (_, use) => use(database),
    withSource: () => assert.fail('no source is read'),
    hasUrl: () => true,
    hooks: [],
    hasSearchAttributes: () => Promise.resolve(true),
  });

  async function planned(
    database: Database,
    input: Omit<BackfillInput, 'pipeline'>,
    { run = randomUUID(), attempt = 1 } = {},
  ): Promise<PlannedBackfill> {
    const environment = new MockActivityEnvironment(
      { attempt, workflowExecution: { workflowId: 'b', runId: run } },
      { logger: new DefaultLogger('ERROR') },
    );
    const request = { arguments: [{ pipeline: 'hourly', ...input }], id: 'b', asOf: new Date().toISOString() };
    return environment.run<[typeof request], PlannedBackfill, ReturnType<typeof planBackfill>>(
      planBackfill(depsOf(database)),
      request,
    );
  }

  /** Every key of a plan, as its workflow asks for them. */
  async function allKeys(database: Database, { plan, keys }: PlannedBackfill): Promise<string[]> {
    const all = [...keys];
    const { range, list, policy } = plan;
    for (;;) {
      const request = {
        pipeline: plan.pipeline,
        ledger: policy.ledger,
        range,
        list,
        cursor: { taken: all.length, key: all.at(-1) },
      };
      const page = await new MockActivityEnvironment().run<
        [typeof request],
        readonly string[],
        ReturnType<typeof nextKeys>
      >(nextKeys(depsOf(database)), request);
      assert.ok(page.length <= PAGE_SIZE);
      if (page.length === 0) return all;
      all.push(...page);
    }
  }

  const rowsOf = (run: string) =>
    test.sql(
      `SELECT run, count(*)::int AS keys FROM repave.run_key WHERE run LIKE $1 || '%' GROUP BY run ORDER BY run`,
      [run],
    );

  it('of a plain range looks at no partition, however long it is, and keeps no list', () =>
    withWorker(test, async (database) => {
      await test.sql(`REVOKE SELECT ON repave.partition FROM ${test.workerRole}`);
      try {
        const run = randomUUID();
        const { plan, keys } = await planned(database, { ...LARGE, order: 'newest-first' }, { run });
        assert.deepEqual(
          [plan.total, plan.list, plan.range],
          [100_000, undefined, { ...LARGE, order: 'newest-first' }],
        );
        assert.deepEqual([keys.length, keys[0]], [PAGE_SIZE, LARGE.to]);
        assert.deepEqual(await rowsOf(run), []);
        const touching = await planned(database, {
          keys: ['2020-01-01T02Z..2020-01-01T05Z', '2020-01-01T00Z..2020-01-01T01Z'],
        });
        assert.deepEqual([touching.plan.total, touching.plan.range?.to], [6, '2020-01-01T05Z']);
        await assert.rejects(planned(database, { ...LARGE, only: ['missing'] }), /permission/i);
      } finally {
        await test.sql(`GRANT SELECT ON repave.partition TO ${test.workerRole}`);
      }
    }));

  for (const order of ['oldest-first', 'newest-first'] as const) {
    it(`keeps what only selects in the asked order, and hands it out in pages: ${order}`, () =>
      withWorker(test, async (database) => {
        const run = randomUUID();
        const found = await planned(database, { ...LARGE, only: ['missing', 'failed'], order }, { run });
        assert.deepEqual([found.plan.total, found.plan.list, found.plan.range], [2_000, run, undefined]);
        assert.equal(found.keys.length, PAGE_SIZE);
        assert.ok(JSON.stringify(found).length < 20_000);
        const keys = await allKeys(database, found);
        assert.equal(new Set(keys).size, 2_000);
        const sorted = keys.toSorted();
        assert.deepEqual(keys, order === 'oldest-first' ? sorted : sorted.reverse());
        assert.deepEqual(await rowsOf(run), [{ run, keys: 2_000 }]);
        const [kept] = await test.sql<{ total: string; concurrency: number }>(
          'SELECT total, concurrency FROM repave.backfill WHERE run = $1',
          [run],
        );
        assert.deepEqual(kept, { total: '2000', concurrency: 4 });
      }));
  }

  it('of a second attempt keeps a list of its own, for the first one may have said other partitions', () =>
    withWorker(test, async (database) => {
      const run = randomUUID();
      await planned(database, { keys: ['2020-01-01T00Z', '2020-01-02T00Z'] }, { run });
      const again = await planned(database, { keys: ['2020-01-01T00Z', '2020-01-03T00Z'] }, { run, attempt: 2 });
      assert.deepEqual(await allKeys(database, again), ['2020-01-01T00Z', '2020-01-03T00Z']);
      assert.deepEqual(await rowsOf(run), [
        { run, keys: 2 },
        { run: `${run}#2`, keys: 2 },
      ]);
    }));

  it('fixes every setting, and says who the fills belong to', () =>
    withWorker(test, async (database) => {
      const run = randomUUID();
      const asked = { last: 3, canary: 9, onFailure: 'pause', maxFailures: 4, onBusy: 'skip', concurrency: 7 } as const;
      const { plan } = await planned(database, asked, { run });
      const { canary, onFailure, maxFailures, onBusy, concurrency, searchAttributes } = plan;
      assert.deepEqual(
        { canary, onFailure, maxFailures, onBusy, concurrency, searchAttributes },
        { canary: 9, onFailure: 'pause', maxFailures: 4, onBusy: 'skip', concurrency: 7, searchAttributes: true },
      );
      assert.deepEqual([plan.policy.onBusy, plan.policy.backfill, plan.run], ['skip', run, run]);
    }));

  it('by an id is that list or none, and one that is refused leaves nothing behind', () =>
    withWorker(test, async (database) => {
      const asked = { ...LARGE, only: ['failed'] } as const;
      const { dryRun } = (await planned(database, { ...asked, dryRun: true })).plan;
      const [run, refused] = [randomUUID(), randomUUID()];
      const same = await planned(database, { ...asked, order: 'newest-first', plan: dryRun?.plan }, { run });
      assert.deepEqual([same.plan.total, same.plan.list], [750, run]);
      await test.sql(`UPDATE repave.partition SET outcome = 'filled' WHERE key = '2012-01-05T04Z'`);
      await assert.rejects(planned(database, { ...asked, plan: dryRun?.plan }, { run: refused }), (error: Error) => {
        assert.equal((error as { type?: string }).type, 'PlanChanged');
        assert.match(error.message, /Then: 750 partitions \(750 failed\); now: 749 partitions \(749 failed\)/);
        return true;
      });
      assert.deepEqual(await rowsOf(refused), []);
      assert.deepEqual(await test.sql('SELECT FROM repave.backfill WHERE run = $1', [refused]), []);
      await test.sql(`UPDATE repave.partition SET outcome = 'failed' WHERE key = '2012-01-05T04Z'`);
    }));

  it('is made, and its list read, also where a newer version has migrated the ledger: an upgrade is under way', () =>
    withWorker(test, async (database) => {
      await test.sql(`INSERT INTO repave.migration (number, name) VALUES (999, 'of a later version')`);
      try {
        const found = await planned(database, { ...LARGE, only: ['missing'] });
        assert.equal((await allKeys(database, found)).length, 1_250);
      } finally {
        await test.sql('DELETE FROM repave.migration WHERE number = 999');
      }
    }));

  it('that is a dry run writes nothing: it may only read', () =>
    withWorker(test, async (database) => {
      const tables = 'repave.backfill, repave.run_key, repave.partition, repave.pipeline, repave.fill, repave.claim';
      await test.sql(`REVOKE INSERT, UPDATE, DELETE ON ${tables} FROM ${test.workerRole}`);
      try {
        const { plan, keys } = await planned(database, {
          ...LARGE,
          only: ['missing'],
          order: 'newest-first',
          dryRun: true,
        });
        assert.deepEqual(keys, []);
        assert.deepEqual(plan.dryRun?.counts, { failed: 0, missing: 1_250, outdated: 0, changed: 0, filled: 0 });
        assert.equal(plan.dryRun?.keys.length, 100);
        assert.ok((plan.dryRun?.keys[0] ?? '') > (plan.dryRun?.keys[99] ?? ''));
        assert.match(plan.dryRun?.plan ?? '', /^p1-[0-9a-f]{12}-missing1250-[0-9a-f]{20}$/);
        await assert.rejects(planned(database, { ...LARGE, only: ['missing'] }), /permission/i);
      } finally {
        await test.sql(
          `GRANT INSERT, UPDATE, DELETE ON ${tables} TO ${test.workerRole}; REVOKE DELETE ON repave.run_key, repave.fill FROM ${test.workerRole}`,
        );
      }
    }));
});
