import assert from 'node:assert/strict';
import { keyAt } from '../../src/calendar/range.js';
import { viewPipeline } from '../../src/cli/pipeline-view.js';
import { resolvePlan } from '../../src/plan/resolve-plan.js';
import { registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { partitionStates } from '../../src/warehouse/partition-states.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { sqlPipeline, withWorker } from '../support/fill.js';

describe('how a pipeline stands', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n int)');
  });
  after(() => test.drop());

  it('counts as missing what a plan does: neither the unfinished partition counts, nor one before the start', () =>
    withWorker(test, async (database) => {
      const by = { column: 'day', by: 'month', zone: 'UTC' } as const;
      const pipeline = sqlPipeline('SELECT 1', { partition: by, start: '2024-02' });
      await registerPipeline(database, pipeline);
      const now = new Date();
      const unfinished = keyAt(by, now.toISOString());
      await test.sql(
        `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
         SELECT 'target', key, 'filled', 1, $1, now(), 'r', 1, 1 FROM unnest($2::text[]) AS k(key)`,
        [pipeline.fingerprint, [unfinished, '2024-01', '2024-02']],
      );
      await test.sql(
        `INSERT INTO repave.partition (pipeline, key, outcome, failed_at, failure_type, failure_message, run, attempt, fence)
         VALUES ('target', '2024-03', 'failed', now(), 'CheckFailed', 'rows', 'r', 1, 2)`,
      );
      const [registered] = await registeredPipelines(database);
      assert.ok(registered);
      const { filled, failed, missing } = await viewPipeline(database, registered);
      const states = (spans: Parameters<typeof partitionStates>[2]) => partitionStates(database, 'target', spans);
      const plan = await resolvePlan({ pipeline: 'target', only: ['missing'] }, pipeline, { now, states });
      assert.deepEqual([filled, failed, missing], [3, 1, plan.total]);
    }));
});
