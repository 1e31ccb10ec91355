import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Client, ScheduleSpec } from '@temporalio/client';
import { timeBefore } from '../../src/activities/time-before.js';
import { testClient, uniqueQueue } from '../support/workflow.js';

describe('the time before', function () {
  this.timeout(300_000);
  let client: Client;
  const made: string[] = [];

  before(async () => (client = await testClient()));
  after(async () => {
    for (const id of made) await client.schedule.getHandle(id).delete();
    await client.connection.close();
  });

  /** Makes a schedule that starts nothing by itself. */
  async function schedule(spec: ScheduleSpec): Promise<string> {
    const scheduleId = `before/${randomBytes(6).toString('hex')}`;
    const action = {
      type: 'startWorkflow' as const,
      workflowType: 'none',
      taskQueue: uniqueQueue(),
      workflowId: scheduleId,
    };
    await client.schedule.create({ scheduleId, spec, action, state: { paused: true } });
    made.push(scheduleId);
    return scheduleId;
  }
  const dueBefore = async (spec: ScheduleSpec, at: string): Promise<string | undefined> =>
    (await timeBefore(client, await schedule(spec), new Date(at)))?.at.toISOString();

  const cron = (text: string, timezone = 'UTC'): ScheduleSpec => ({ cronExpressions: [text], timezone });
  const cases: readonly (readonly [what: string, spec: ScheduleSpec, at: string, before: string | undefined])[] = [
    ['every second', { intervals: [{ every: '1s' }] }, '2024-03-05T12:00:00Z', '2024-03-05T11:59:59.000Z'],
    ['every minute', cron('* * * * *'), '2024-03-05T12:00:00Z', '2024-03-05T11:59:00.000Z'],
    ['daily', cron('15 2 * * *'), '2024-03-05T02:15:00Z', '2024-03-04T02:15:00.000Z'],
    ['daily, asked in between', cron('15 2 * * *'), '2024-03-05T14:00:00Z', '2024-03-05T02:15:00.000Z'],
    ['on working days', cron('15 2 * * 1-5'), '2024-03-04T02:15:00Z', '2024-03-01T02:15:00.000Z'],
    ['monthly', cron('0 3 1 * *'), '2024-03-01T03:00:00Z', '2024-02-01T03:00:00.000Z'],
    ['yearly', cron('0 3 1 1 *'), '2024-01-01T03:00:00Z', '2023-01-01T03:00:00.000Z'],
    ['each minute of one day a year', cron('* * 1 1 *'), '2024-12-01T00:00:00Z', '2024-01-01T23:59:00.000Z'],
    ['on 29 February', cron('0 3 29 2 *'), '2024-02-29T03:00:00Z', '2020-02-29T03:00:00.000Z'],
    [
      'at 02:30, the day after it was skipped',
      cron('30 2 * * *', 'America/New_York'),
      '2024-03-11T06:30:00Z',
      '2024-03-09T07:30:00.000Z',
    ],
    [
      'at 01:30, the second time',
      cron('30 1 * * *', 'America/New_York'),
      '2024-11-03T06:30:00Z',
      '2024-11-03T05:30:00.000Z',
    ],
    [
      'at its first time',
      { ...cron('15 2 * * *'), startAt: new Date('2024-03-01T00:00:00Z') },
      '2024-03-01T02:15:00Z',
      undefined,
    ],
  ];
  for (const [what, spec, at, expected] of cases) {
    it(`of a schedule that is due ${what}`, async () => assert.equal(await dueBefore(spec, at), expected));
  }

  it('says the zone', async () => {
    const id = await schedule(cron('15 2 * * *', 'Europe/Vienna'));
    assert.equal((await timeBefore(client, id, new Date()))?.zone, 'Europe/Vienna');
  });

  it('is none of a schedule that is no more', async () => {
    assert.equal(await timeBefore(client, 'before/nothing', new Date()), undefined);
  });
});
