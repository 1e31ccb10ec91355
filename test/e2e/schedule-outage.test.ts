import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import { type BackfillResult, scheduledRunId, scheduleId } from '../../src/contract.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import type { TemporalServer } from '../../src/dev/temporal-server.js';
import { loadSettings } from '../../src/settings.js';
import { until } from '../chaos/until.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { resultOfRun } from '../support/scheduled-runs.js';
import { startPrivateTemporal } from '../support/temporal.js';
import { createProject, startWorker, type WorkerProcess } from '../support/worker.js';
import { uniqueQueue } from '../support/workflow.js';

const EVERY_MS = 3_000;
const HOUR_MS = 3_600_000;
const PIPELINE = `hourly_${randomBytes(4).toString('hex')}`;
const FILE = `-- repave
-- target: hours
-- partition: { column: hour, by: hour }
-- start: 2024-01-01T00Z
SELECT :start AS hour
`;

/**
 * What is shown: over an outage of the Temporal server and of the worker, a schedule made as `repave schedule add` makes it starts
 * one run for each time that was missed, with the id and the date of that time. What is not: three dates that differ, since a
 * server's clock cannot be set and dates are at least hours apart; so the test gives the schedule another spec, of every 3 s.
 * That the dates of times further apart are right, scheduled-dates.test.ts shows.
 */
describe('a schedule whose server and worker were down', function () {
  this.timeout(300_000);
  let server: TemporalServer;
  let database: TestDatabase;
  let project: string;
  let worker: WorkerProcess;
  let repave: RepaveClient;
  const taskQueue = uniqueQueue();

  before(async () => {
    [server, database] = await Promise.all([startPrivateTemporal(), createTestDatabase()]);
    await database.sql('CREATE TABLE hours (hour timestamptz NOT NULL)');
    project = await createProject({ [`${PIPELINE}.sql`]: FILE });
    await connect();
  });
  after(async () => {
    await worker?.kill();
    await repave.close();
    await server.kill();
    await database.drop();
  });

  async function connect(): Promise<void> {
    repave = await connectRepave({ settings: loadSettings(onlyThisServer(server.address)), taskQueue });
    worker = await startWorker({ databaseUrl: database.url, taskQueue, project, temporalAddress: server.address });
  }

  const due = async (client: Client): Promise<Date[]> => {
    const { info } = await client.schedule.getHandle(scheduleId(PIPELINE)).describe();
    return info.recentActions.map(({ scheduledAt }) => scheduledAt);
  };

  it('starts a run for each time that was missed, once, with the date of that time', async () => {
    const request = { pipeline: PIPELINE, cron: '0 0 1 1 *', zone: 'UTC', last: 1 };
    await repave.schedules.add({ ...request, healsChanged: false, keeper: 'schedule add' });
    const schedule = repave.temporal.schedule.getHandle(scheduleId(PIPELINE));
    await schedule.update((before) => ({ ...before, spec: { intervals: [{ every: EVERY_MS }] } }));
    const before = (await until('a first run', async () => (await due(repave.temporal)).at(-1))).getTime();

    await Promise.all([server.stop(), worker.kill()]);
    const downAt = Date.now();
    await repave.close();
    // The outage itself, of three times and a bit.
    await new Promise((resolve) => setTimeout(resolve, 3 * EVERY_MS + 500));
    server = await startPrivateTemporal({ dir: server.logFile.replace(/\/[^/]+$/, '') });
    const upAt = Date.now();
    await connect();

    const client = repave.temporal;
    await until('a run after the outage', async () => (await due(client)).some((time) => time.getTime() > upAt));
    await client.schedule.getHandle(scheduleId(PIPELINE)).pause();
    const last = (await due(client)).at(-1)?.getTime() ?? 0;
    const times: number[] = [];
    for (let time = before; time <= last; time += EVERY_MS) times.push(time);
    assert.ok(times.filter((time) => downAt < time && time < upAt).length >= 3, 'three times were missed');

    const results = await Promise.all(
      times.map((time) => resultOfRun(client, scheduledRunId(PIPELINE, 'scheduled', new Date(time)))),
    );
    assert.deepEqual(results.map(hours), times.map(hourBefore));
    const ids = times.map((time) => scheduledRunId(PIPELINE, 'scheduled', new Date(time)));
    // Temporal's listing lags behind.
    const runs = await until('all runs to be listed', async () => {
      const listed: string[] = [];
      for await (const { workflowId } of client.workflow.list({ query: "WorkflowType = 'backfill'" }))
        listed.push(workflowId);
      return ids.every((id) => listed.includes(id)) && listed;
    });
    assert.equal(new Set(runs).size, runs.length, 'each time once');
  });

  const hours = ({ first, last }: BackfillResult): string => `${first}..${last}`;
  /** The hour that was finished last at a time. */
  const hourBefore = (time: number): string => {
    const key = `${new Date(Math.floor(time / HOUR_MS) * HOUR_MS - HOUR_MS).toISOString().slice(0, 13)}Z`;
    return `${key}..${key}`;
  };
});
