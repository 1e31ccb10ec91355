import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { type BackfillResult, healScheduleId, scheduledRunId, scheduleId } from '../../src/contract.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { document, repave } from '../cli/repave.js';
import { resultOfRun } from '../support/scheduled-runs.js';
import { testTemporal } from '../support/temporal.js';

/** Of this test alone, since ids of workflows and schedules hold it. */
const PIPELINE = `daily_${randomBytes(4).toString('hex')}`;
const file = (version: number): string => `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- start: 2024-01-01
-- version: ${version}
-- concurrency: 1
SELECT :date AS day, 1 / (SELECT 1 - count(*) FROM bad WHERE day = :date) AS n FROM held(:key)
`;

describe('the heal of a schedule', function () {
  this.timeout(300_000);
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({
      pipelines: { [`${PIPELINE}.sql`]: file(1) },
      tables: 'CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL); CREATE TABLE bad (day date NOT NULL);',
    });
  });
  after(async () => {
    await installation.client.schedules.remove(PIPELINE).catch(() => undefined);
    await installation.close();
  });

  const fill = async (...keys: string[]): Promise<void> => {
    const handle = await installation.client.backfill({ pipeline: PIPELINE, keys });
    await handle.result().catch(() => undefined);
  };
  /** Has Temporal take the action of one schedule for one time. */
  const due = async (schedule: string, at: string): Promise<void> => {
    const time = new Date(at);
    const handle = installation.temporal.schedule.getHandle(schedule);
    await handle.backfill({ start: new Date(time.getTime() - 1_000), end: time });
  };
  const fills = async (): Promise<string[]> => {
    const sql = 'SELECT key FROM repave.fill ORDER BY id';
    return (await installation.database.sql<{ key: string }>(sql)).map(({ key }) => key);
  };

  it('waits for the day’s run of the same time, then fills what it finds, oldest first and last in line', async () => {
    const { client, database, project, temporal } = installation;
    const old = await installation.startWorker();
    await fill('2024-01-02');
    await old.kill();
    writeFileSync(join(project, 'pipelines', `${PIPELINE}.sql`), file(2));
    await installation.startWorker();
    await database.sql(`INSERT INTO bad VALUES ('2024-01-03')`);
    await fill('2024-01-01', '2024-01-03', '2024-01-04');
    await database.sql('DELETE FROM bad');
    const before = await fills();
    assert.deepEqual([...before].sort(), ['2024-01-01', '2024-01-02', '2024-01-04']);

    const request = { pipeline: PIPELINE, cron: '15 2 * * *', zone: 'UTC', last: 1, heal: 7 };
    await client.schedules.add({ ...request, healsChanged: false, keeper: 'schedule add' });
    await client.schedules.pause(PIPELINE, 'the test says when');
    const at = '2024-01-08T02:15:00Z';
    const day = scheduledRunId(PIPELINE, 'scheduled', new Date(at));
    const heal = scheduledRunId(PIPELINE, 'heal', new Date(at));
    await installation.hold('2024-01-07');
    // The heal comes first, as it may: both are due at one moment.
    await due(healScheduleId(PIPELINE), at);
    await until('the heal that waits', async () => (await waitsIn(heal)) === 'awaitRun');
    await due(scheduleId(PIPELINE), at);
    await installation.heldFills(1, PIPELINE);
    assert.deepEqual(await fills(), before, 'nothing is healed while the day’s run goes on');
    assert.equal(await waitsIn(heal), 'awaitRun');
    // An hour from when it could begin, however long after its start that was.
    assert.deepEqual(await timeLimits(heal), { awaitRun: 3_600_000 });
    assert.deepEqual(await timeLimits(day), { planBackfill: 0 }, 'a run waits without an end for what is away');
    const words = await repave(project, ['concurrency', PIPELINE, '2', '--json'], {
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      DATABASE_URL: database.url,
      REPAVE_TASK_QUEUE: installation.taskQueue,
    });
    assert.equal(words.code, 0, words.stderr);
    assert.equal(document<{ id: string }>(words).id, day, 'the heal that waits for it is not meant');

    await installation.release('2024-01-07');
    const ofDay = await resultOfRun(temporal, day);
    assert.deepEqual([ofDay.first, ofDay.last, ofDay.filled], ['2024-01-07', '2024-01-07', 1]);
    const healed = await resultOfRun(temporal, heal);
    assert.equal(healed.filled, 4, JSON.stringify(healed));
    const since = (await fills()).slice(before.length);
    assert.deepEqual(since, ['2024-01-07', '2024-01-02', '2024-01-03', '2024-01-05', '2024-01-06']);
    const { priority } = await temporal.workflow.getHandle(heal).describe();
    assert.equal(priority?.priorityKey, 5);
    assert.equal((await temporal.workflow.getHandle(`${PIPELINE}/2024-01-05`).describe()).priority?.priorityKey, 5);
  });

  it('is cancelled while it waits', async () => {
    const at = '2024-01-20T02:15:00Z';
    const heal = scheduledRunId(PIPELINE, 'heal', new Date(at));
    await due(healScheduleId(PIPELINE), at);
    await until('the heal that waits', async () => (await waitsIn(heal)) === 'awaitRun');
    const handle = installation.temporal.workflow.getHandle<() => Promise<BackfillResult>>(heal);
    await handle.cancel();
    await assert.rejects(handle.result(), (error) => {
      assert.ok(error instanceof WorkflowFailedError, String(error));
      assert.ok(error.cause instanceof CancelledFailure, String(error.cause));
      return true;
    });
  });

  it('is stopped while it waits', async () => {
    const at = '2024-01-21T02:15:00Z';
    const heal = scheduledRunId(PIPELINE, 'heal', new Date(at));
    await due(healScheduleId(PIPELINE), at);
    await until('the heal that waits', async () => (await waitsIn(heal)) === 'awaitRun');
    await installation.client.handle(heal).stop();
    const { stopped, filled } = await resultOfRun(installation.temporal, heal);
    assert.deepEqual([stopped, filled], [true, 0]);
  });

  /** Milliseconds in which each activity of a workflow must be over, tries and all; 0 for none. */
  async function timeLimits(id: string): Promise<Record<string, number>> {
    const { events } = await installation.temporal.workflow.getHandle(id).fetchHistory();
    const begun = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: activity }) => activity ?? []);
    return Object.fromEntries(begun.map((one) => [one.activityType?.name ?? '', tsToMs(one.scheduleToCloseTimeout)]));
  }

  /** The activity that a workflow waits in; undefined where it is not there yet, or waits in none. */
  async function waitsIn(id: string): Promise<string | undefined> {
    try {
      const { raw } = await installation.temporal.workflow.getHandle(id).describe();
      return raw.pendingActivities?.[0]?.activityType?.name ?? undefined;
    } catch {
      return undefined;
    }
  }
});
