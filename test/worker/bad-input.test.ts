import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Bed, makeBed } from '../support/bed.js';
import { failedAs } from '../workflows/harness.js';
import { eventsOf, failedTasks, scheduledActivities } from '../workflows/scripted.js';

describe('bad input', () => {
  let bed: Bed;

  before(async () => {
    bed = await makeBed();
    await bed.worker();
  });
  after(() => bed.close());

  /** Starts a workflow as any program might, and sees that it fails at once, having asked nothing of the database. */
  async function refused(type: string, args: unknown[], named: string): Promise<void> {
    const handle = await bed.client.temporal.workflow.start(type, {
      taskQueue: bed.taskQueue,
      workflowId: `test/${randomUUID()}`,
      args,
    });
    await assert.rejects(handle.result(), failedAs('InvalidInput', named));
    const events = await eventsOf(handle);
    assert.deepEqual(failedTasks(events), []);
    assert.deepEqual(
      events.filter((event) => event.startChildWorkflowExecutionInitiatedEventAttributes),
      [],
    );
    const planner = type === 'backfill' ? 'planBackfill' : 'planPartition';
    assert.deepEqual(scheduledActivities(events), [planner]);
    assert.equal(events.filter((event) => event.activityTaskFailedEventAttributes).length, 1);
    for (const table of ['backfill', 'claim', 'fill', 'failure', 'run_key']) {
      assert.deepEqual(await bed.database.sql(`SELECT * FROM repave.${table}`), []);
    }
  }

  const range = { from: '2024-01-01', to: '2024-01-31' };
  const inputs: [string, () => unknown[], string][] = [
    ['a bare date', () => ['2024-01-01'], '"2024-01-01"'],
    ['a list', () => [[]], 'one JSON object'],
    ['nothing', () => [], 'one JSON object'],
    ['null', () => [null], 'one JSON object'],
    ['a number for a key', () => [{ pipeline: bed.pipeline, from: 5 }], 'from is 5'],
    ['no pipeline', () => [{ from: 5 }], 'pipeline is missing'],
    ['JSON in a string', () => [JSON.stringify({ pipeline: bed.pipeline, ...range })], 'encoded once'],
    ['a second argument', () => [{ pipeline: bed.pipeline, ...range }, 5], 'one'],
    [
      'a forged continuation',
      () => [{ pipeline: bed.pipeline, ...range }, { carried: { plan: { pipeline: 'x' } } }],
      'one',
    ],
    ['an unknown field', () => [{ pipeline: bed.pipeline, ...range, concurency: 3 }], 'concurrency'],
    ['5,000 lanes', () => [{ pipeline: bed.pipeline, ...range, concurrency: 5_000 }], '1 to 100'],
    ['a day that does not exist', () => [{ pipeline: bed.pipeline, from: '2024-02-30' }], '2024-02-30'],
    ['an hour of a daily pipeline', () => [{ pipeline: bed.pipeline, from: '2024-02-28T13Z' }], '2024-02-28T13Z'],
    [
      'a range the wrong way round',
      () => [{ pipeline: bed.pipeline, from: '2024-02-03', to: '2024-02-01' }],
      '2024-02-03',
    ],
    ['only the future', () => [{ pipeline: bed.pipeline, from: '2999-01-01' }], 'Nothing is left'],
  ];
  for (const [what, args, named] of inputs) {
    it(`to backfill fails at once: ${what}`, () => refused('backfill', args(), named));
  }

  const partitions: [string, () => unknown[], string][] = [
    ['a bare date', () => ['2024-01-01'], '"2024-01-01"'],
    ['nothing', () => [], 'one JSON object'],
    [
      'a forged policy',
      () => [
        { pipeline: bed.pipeline, key: '2024-01-01' },
        { ledger: '', fingerprint: '', timeoutMs: 1, giveUpAfterMs: 1 },
      ],
      'one',
    ],
    ['a key of another form', () => [{ pipeline: bed.pipeline, key: '2024-W03' }], '2024-W03'],
    ['a key before the start', () => [{ pipeline: bed.pipeline, key: '2023-12-31' }], '2024-01-01'],
    ['a key in the future', () => [{ pipeline: bed.pipeline, key: '2999-01-01' }], 'Nothing is left'],
  ];
  for (const [what, args, named] of partitions) {
    it(`to partition fails at once: ${what}`, () => refused('partition', args(), named));
  }

  it('a pipeline that is not there fails as UnknownPipeline, naming those that are', async () => {
    const handle = await bed.client.backfill({ pipeline: 'sales_sumary', ...range });
    await assert.rejects(handle.result(), { type: 'UnknownPipeline', message: new RegExp(bed.pipeline) });
  });

  it('writes nothing with dryRun, and says what it would fill', async () => {
    const result = await (await bed.client.backfill({ pipeline: bed.pipeline, ...range, dryRun: true })).result();
    assert.equal(result.total, 31);
    assert.equal(result.keys?.length, 31);
    assert.equal(result.filled, 0);
    assert.deepEqual(await bed.database.sql('SELECT * FROM repave.backfill'), []);
  });
});
