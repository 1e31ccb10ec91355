import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { BackfillPlan, PlanBackfillRequest, PlannedBackfill } from '../../src/activities/messages.js';
import { planBackfill } from '../../src/activities/plan-backfill.js';
import { healScheduleId, scheduleId } from '../../src/contract.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { sqlPipeline, withWorker } from '../support/fill.js';

const plain = sqlPipeline('SELECT :date AS day', { name: 'plain', start: '2024-01-01' });
const asking: Pipeline = { ...plain, name: 'asking', ready: { query: plain.query, retryAfterMs: 60_000 } };
const HEAL = healScheduleId('asking');

describe('the plan of a heal', () => {
  let test: TestDatabase;

  before(async () => (test = await createTestDatabase()));
  after(() => test.drop());

  /** The plan of a run that a schedule has started, or nobody, as its `leavesAfterMs` has it. */
  async function leavesAfterMs(pipeline: Pipeline, scheduledBy?: string): Promise<BackfillPlan['leavesAfterMs']> {
    const environment = new MockActivityEnvironment(
      { workflowExecution: { workflowId: 'b', runId: randomUUID() } },
      { logger: new DefaultLogger('ERROR') },
    );
    const input = { pipeline: pipeline.name, from: '2024-01-01', to: '2024-01-02' };
    const request = { arguments: [input], id: 'b', asOf: new Date().toISOString(), scheduledBy };
    const { plan } = await withWorker(test, (database) =>
      environment.run<[PlanBackfillRequest], PlannedBackfill, ReturnType<typeof planBackfill>>(
        planBackfill({
          pipelines: new Map([[pipeline.name, pipeline]]),
          broken: new Map(),
          unregistered: new Map(),
          registerAgain: async () => undefined,
          withDatabase: (_, use) => use(database),
          withSource: () => assert.fail('no source is read'),
          hasUrl: () => true,
          hooks: [],
          hasSearchAttributes: () => Promise.resolve(true),
        }),
        request,
      ),
    );
    return plan.leavesAfterMs;
  }

  it('leaves what is not ready after an hour, or after giveUpAfter where that is less', async () => {
    assert.equal(await leavesAfterMs(asking, HEAL), 3_600_000);
    const quick = { ...asking, retry: { ...asking.retry, giveUpAfterMs: 60_000 } };
    assert.equal(await leavesAfterMs(quick, HEAL), 60_000);
  });

  it('alone does so: neither a day’s run nor a person’s, nor where nothing is asked', async () => {
    assert.equal(await leavesAfterMs(asking, scheduleId('asking')), undefined);
    assert.equal(await leavesAfterMs(asking), undefined);
    assert.equal(await leavesAfterMs(plain, healScheduleId('plain')), undefined);
  });
});
