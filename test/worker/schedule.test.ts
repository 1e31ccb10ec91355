import assert from 'node:assert/strict';
import { scheduleId } from '../../src/contract.js';
import { type Bed, makeBed } from '../support/bed.js';
import { until } from '../workflows/scripted.js';

describe('a backfill that a schedule starts late', () => {
  let bed: Bed;

  before(async () => {
    bed = await makeBed();
    await bed.worker();
  });
  after(() => bed.close());

  it('says in the list why its last run failed, where no worker has such a pipeline', async () => {
    const pipeline = `${bed.pipeline}_gone`;
    await bed.client.schedules.add({
      pipeline,
      cron: '0 0 1 1 *',
      zone: 'UTC',
      last: 1,
      healsChanged: false,
      keeper: 'schedule add',
    });
    try {
      await bed.client.temporal.schedule.getHandle(scheduleId(pipeline)).trigger();
      await until(async () => {
        const { lastRun } = (await bed.client.schedules.list()).find((one) => one.pipeline === pipeline) ?? {};
        const { ended, reason = '' } = lastRun ?? {};
        return ended === 'failed' && reason.startsWith(`UnknownPipeline: No pipeline "${pipeline}"`);
      });
    } finally {
      await bed.client.schedules.remove(pipeline);
    }
  });

  it('counts `last` back from the time it was scheduled for', async () => {
    const schedule = await bed.client.temporal.schedule.create({
      scheduleId: `daily/${bed.pipeline}`,
      spec: { intervals: [{ every: '1d', offset: '3h' }] },
      action: {
        type: 'startWorkflow',
        workflowType: 'backfill',
        workflowId: `scheduled/${bed.pipeline}`,
        taskQueue: bed.taskQueue,
        args: [{ pipeline: bed.pipeline, last: 2 }],
      },
      state: { paused: true },
    });
    try {
      const at = new Date('2024-03-05T03:00:00Z');
      await schedule.backfill({ start: at, end: new Date('2024-03-05T04:00:00Z'), overlap: 'ALLOW_ALL' });
      await until(
        async () => (await bed.database.sql(`SELECT FROM repave.backfill WHERE outcome = 'done'`)).length === 1,
      );
      const keys = await bed.database.sql<{ key: string }>('SELECT key FROM repave.fill ORDER BY key');
      assert.deepEqual(
        keys.map(({ key }) => key),
        ['2024-03-03', '2024-03-04'],
      );
    } finally {
      await schedule.delete();
    }
  });
});
