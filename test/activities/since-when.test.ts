import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Client, ScheduleSpec } from '@temporalio/client';
import { sinceWhen } from '../../src/activities/since-when.js';
import { beginBackfill } from '../../src/warehouse/backfills.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { testClient, uniqueQueue } from '../support/workflow.js';

const PIPELINE = 'sales';
const DAILY: ScheduleSpec = { cronExpressions: ['15 2 * * *'], timezone: 'UTC' };
const WORKING_DAYS: ScheduleSpec = { cronExpressions: ['15 2 * * 1-5'], timezone: 'UTC' };

describe('since when a schedule’s run answers', function () {
  this.timeout(300_000);
  let client: Client;
  let test: TestDatabase;
  let database: Database;
  let scheduledBy: string;
  /** What the ids of the schedule's runs begin with. */
  let prefix: string;

  before(async () => {
    [client, test] = await Promise.all([testClient(), createTestDatabase()]);
    database = await openDatabase(test.url, { fills: 1 });
  });
  after(async () => {
    await client.connection.close();
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    scheduledBy = `since/${randomBytes(6).toString('hex')}`;
    prefix = `backfill/${scheduledBy}-`;
    await client.schedule.create({
      scheduleId: scheduledBy,
      spec: DAILY,
      action: { type: 'startWorkflow', workflowType: 'none', taskQueue: uniqueQueue(), workflowId: prefix },
      state: { paused: true },
    });
  });
  afterEach(() =>
    client.schedule
      .getHandle(scheduledBy)
      .delete()
      .catch(() => undefined),
  );

  const handle = () => client.schedule.getHandle(scheduledBy);
  const respecify = (spec: ScheduleSpec) => handle().update((before) => ({ ...before, spec }));
  const at = (day: number | string): string =>
    typeof day === 'string' ? day : `2024-03-${String(day).padStart(2, '0')}T02:15:00Z`;

  /** A run in the ledger that was due on a day of March 2024, and planned a second later or then. */
  async function planned(
    day: number | string,
    { outcome, on = at(day) }: { outcome?: string; on?: string } = {},
  ): Promise<void> {
    const id = prefix + at(day);
    await beginBackfill(database, { run: randomBytes(8).toString('hex'), id, pipeline: PIPELINE, input: {}, total: 1 });
    await test.sql(
      `UPDATE repave.backfill SET started_at = $2::timestamptz + interval '1 s', outcome = $3 WHERE id = $1`,
      [id, on, outcome ?? null],
    );
  }
  /** A run that waits for a worker. */
  const waiting = (day: number) =>
    client.workflow.start('backfill', { workflowId: prefix + at(day), taskQueue: uniqueQueue(), args: [] });

  async function since(day: number | string, startedAt = at(day)): Promise<string | undefined> {
    const run = {
      pipeline: PIPELINE,
      id: prefix + at(day),
      scheduledBy,
      due: new Date(at(day)),
      startedAt: new Date(startedAt),
    };
    return (await sinceWhen(client, database, run))?.at.toISOString().replace('.000Z', 'Z');
  }

  it('is the cron’s time before where the run of that has planned, and where nothing is before', async () => {
    assert.equal(await since(11), at(10));
    await planned(8);
    await planned(10);
    assert.equal(await since(11), at(10));
  });

  it('is the cron’s time before where the run of that still waits for a worker', async () => {
    await planned(8);
    const { terminate } = await waiting(10).then((run) => ({ terminate: () => run.terminate() }));
    assert.equal(await since(11), at(10));
    await terminate();
    assert.equal(await since(11), at(8), 'it will plan nothing any more');
  });

  it('is the last run before a pause, whenever and by whomever the schedule was changed since', async () => {
    await planned(8);
    await respecify(DAILY);
    assert.equal(await since(21), at(8));
    // A week late, when runs after it have planned.
    for (let day = 21; day < 32; day++) await planned(day);
    assert.equal(await since(21), at(8));
  });

  it('counts a run that somebody has triggered in a pause, which itself goes back over the pause', async () => {
    await planned(8);
    const triggered = '2024-03-15T14:03:07Z';
    assert.equal(await since(triggered), at(8));
    await planned(triggered);
    assert.equal(await since(21), triggered);
    assert.equal(await since(16), at(15), 'never later than the cron’s');
  });

  it('goes on from a run by the cron that it had, after a change and after a removal', async () => {
    await respecify(WORKING_DAYS);
    // Friday's, and Monday's that waits.
    await planned(8);
    assert.equal(await since(11), at(8));
    await respecify(DAILY);
    assert.equal(await since(11), at(8));
    await handle().delete();
    assert.equal(await since(11), at(8));
  });

  it('passes over a run that broke down, and over one that is no schedule’s', async () => {
    await planned(8);
    await planned(9, { outcome: 'incomplete' });
    await planned(10, { outcome: 'failed' });
    assert.equal(await since(11), at(9));
    await beginBackfill(database, { run: 'by hand', id: `${prefix}by-hand`, pipeline: PIPELINE, input: {}, total: 1 });
    assert.equal(await since(21), at(9));
  });

  it('does not look back beyond 400 days', async () => {
    await planned('2023-02-01T02:15:00Z');
    assert.equal(await since('2024-03-06T02:15:00Z'), '2023-02-01T02:15:00Z');
    assert.equal(await since('2024-03-09T02:15:00Z'), '2024-03-08T02:15:00Z');
  });

  it('is the cron’s alone of times that somebody has asked for long after, which count for no other', async () => {
    await planned(1);
    assert.equal(await since(11, '2024-05-01T00:00:00Z'), at(10));
    await planned(11, { on: '2024-05-01T00:00:00Z' });
    assert.equal(await since(21), at(1));
  });

  it('is the cron’s where the run’s id says no time', async () => {
    await planned(8);
    const run = { pipeline: PIPELINE, id: 'by-another-system', scheduledBy, due: new Date(at(11)) };
    assert.equal((await sinceWhen(client, database, run))?.at.toISOString(), '2024-03-10T02:15:00.000Z');
  });
});
