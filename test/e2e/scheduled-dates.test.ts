import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { msToTs, tsToMs } from '@temporalio/common/lib/time.js';
import { scheduledRunId, scheduleId } from '../../src/contract.js';
import { Installation } from '../chaos/installation.js';
import { resultOfRun, runsOf } from '../support/scheduled-runs.js';
import { temporal } from './temporal-cli.js';

const MARK = randomBytes(4).toString('hex');
/** Of this test alone, since ids of workflows and schedules hold it. */
const named = (name: string): string => `${name}_${MARK}`;
const NAMES = ['month', 'spring', 'autumn', 'late', 'paused'];

function file(name: string): string {
  const zone = name === 'spring' || name === 'autumn' ? 'America/New_York' : 'UTC';
  return `-- repave
-- target: ${name}
-- partition: { column: day, by: day, zone: ${zone} }
-- start: 2024-01-01
SELECT :date AS day
`;
}

describe('the dates of a schedule’s runs', function () {
  this.timeout(300_000);
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({
      pipelines: Object.fromEntries(NAMES.map((name) => [`${named(name)}.sql`, file(name)])),
      tables: NAMES.map((name) => `CREATE TABLE ${name} (day date NOT NULL);`).join('\n'),
    });
    await installation.startWorker();
  });
  after(async () => {
    for (const name of NAMES) await installation.client.schedules.remove(named(name)).catch(() => undefined);
    await installation.close();
  });

  /** Makes a schedule that starts nothing by itself. */
  async function scheduled(name: string, cron: string, zone: string, lookback?: number): Promise<void> {
    const { schedules } = installation.client;
    const more = lookback === undefined ? {} : { lookback };
    const request = { pipeline: named(name), cron, zone, last: 1, ...more };
    await schedules.add({ ...request, healsChanged: false, keeper: 'schedule add' });
    await schedules.pause(named(name), 'the test says when');
  }

  /** Has Temporal take the actions of a time that is past, as its own command does. */
  async function backfill(name: string, from: string, to: string): Promise<void> {
    const words = ['--start-time', from, '--end-time', to, '--overlap-policy', 'AllowAll'];
    const schedule = ['--schedule-id', scheduleId(named(name))];
    const { code, stderr } = await temporal('default', 'schedule', 'backfill', ...schedule, ...words);
    assert.equal(code, 0, stderr);
  }

  /** Temporal's own listing of a schedule's times. */
  async function times(name: string, from: string, to: string): Promise<string[]> {
    const { startTime } = await installation.temporal.workflowService.listScheduleMatchingTimes({
      namespace: installation.namespace,
      scheduleId: scheduleId(named(name)),
      startTime: msToTs(Date.parse(from)),
      endTime: msToTs(Date.parse(to)),
    });
    return (startTime ?? []).map((time) => new Date(tsToMs(time)).toISOString());
  }

  /** The days of each run that was due in a time, by that time. */
  async function daysByRun(name: string, due: readonly string[]): Promise<Record<string, string>> {
    const client = installation.temporal;
    const ids = due.map((time) => scheduledRunId(named(name), 'scheduled', new Date(time)));
    assert.deepEqual(await runsOf(client, scheduleId(named(name)), due.length), [...ids].sort());
    const results = await Promise.all(ids.map((id) => resultOfRun(client, id)));
    const days = results.map(({ first, last, filled, notes }) =>
      filled === 0 ? notes.join() : first === last ? first : `${first}..${last}`,
    );
    return Object.fromEntries(due.map((time, i) => [time.replace(':00.000', ''), days[i] ?? '']));
  }

  const fills = (name: string): Promise<string[]> =>
    installation.database
      .sql<{ key: string }>('SELECT key FROM repave.fill WHERE pipeline = $1 ORDER BY key', [named(name)])
      .then((rows) => rows.map(({ key }) => key));

  const daysFrom = (first: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => new Date(Date.parse(first) + i * 86_400_000).toISOString().slice(0, 10));

  it('are a month’s, each once, where Temporal’s own `schedule backfill` is told to take it', async () => {
    await scheduled('month', '15 2 * * *', 'UTC');
    await backfill('month', '2024-03-02T00:00:00Z', '2024-04-01T23:59:59Z');
    const due = daysFrom('2024-03-02', 31).map((day) => `${day}T02:15:00.000Z`);
    const days = daysFrom('2024-03-01', 31);
    assert.deepEqual(
      await daysByRun('month', due),
      Object.fromEntries(due.map((time, i) => [time.replace(':00.000', ''), days[i]])),
    );
    assert.deepEqual(await fills('month'), days);
  });

  it('leave none out where the clock skips the time', async () => {
    await scheduled('spring', '30 2 * * *', 'America/New_York');
    const range = ['2024-03-08T12:00:00Z', '2024-03-12T12:00:00Z'] as const;
    const due = await times('spring', ...range);
    await backfill('spring', ...range);
    assert.deepEqual(await daysByRun('spring', due), {
      '2024-03-09T07:30Z': '2024-03-08',
      '2024-03-11T06:30Z': '2024-03-09..2024-03-10',
      '2024-03-12T06:30Z': '2024-03-11',
    });
    assert.deepEqual(await fills('spring'), daysFrom('2024-03-08', 4));
  });

  it('double none where the clock shows the time twice', async () => {
    await scheduled('autumn', '30 1 * * *', 'America/New_York');
    const range = ['2024-11-01T12:00:00Z', '2024-11-04T12:00:00Z'] as const;
    const due = await times('autumn', ...range);
    await backfill('autumn', ...range);
    const { '2024-11-03T06:30Z': second, ...others } = await daysByRun('autumn', due);
    assert.match(second ?? '', /clock of America\/New_York went back/);
    assert.deepEqual(others, {
      '2024-11-02T05:30Z': '2024-11-01',
      '2024-11-03T05:30Z': '2024-11-02',
      '2024-11-04T06:30Z': '2024-11-03',
    });
    assert.deepEqual(await fills('autumn'), daysFrom('2024-11-01', 3));
  });

  it('are the day’s and those of the lookback before it: with 2, on day 10, exactly 8, 9 and 10', async () => {
    await scheduled('late', '15 2 * * *', 'UTC', 2);
    await backfill('late', '2024-02-11T02:00:00Z', '2024-02-11T03:00:00Z');
    const due = '2024-02-11T02:15:00.000Z';
    assert.deepEqual(await daysByRun('late', [due]), { '2024-02-11T02:15Z': '2024-02-08..2024-02-10' });
    assert.deepEqual(await fills('late'), ['2024-02-08', '2024-02-09', '2024-02-10']);
  });

  it('leave none out over a pause and a change of the cron, whatever was asked for in between', async () => {
    const today = Date.now();
    const day = (ago: number): string => new Date(today - ago * 86_400_000).toISOString().slice(0, 10);
    const at = (ago: number, time = '02:15'): string => `${day(ago)}T${time}:00.000Z`;
    const run = async (ago: number, time = '02:15'): Promise<string> => {
      await backfill('paused', `${day(ago)}T02:00:00Z`, `${day(ago)}T04:00:00Z`);
      const { first, last } = await resultOfRun(
        installation.temporal,
        scheduledRunId(named('paused'), 'scheduled', new Date(at(ago, time))),
      );
      return `${first}..${last}`;
    };
    await scheduled('paused', '15 2 * * *', 'UTC');
    assert.equal(await run(12), `${day(13)}..${day(13)}`, 'the first there is');
    assert.equal(await run(11), `${day(12)}..${day(12)}`);
    assert.equal(await run(7), `${day(11)}..${day(8)}`, 'as if triggered in a pause');
    const { schedules } = installation.client;
    const request = { pipeline: named('paused'), cron: '15 3 * * *', zone: 'UTC', last: 1 };
    const changed = { ...request, healsChanged: false, keeper: 'schedule add' } as const;
    await schedules.apply({ kind: 'changed', pipeline: named('paused'), request: changed, fields: [] });
    assert.equal(await run(3, '03:15'), `${day(7)}..${day(4)}`);
    assert.deepEqual(await fills('paused'), daysFrom(day(13), 10));
  });
});
