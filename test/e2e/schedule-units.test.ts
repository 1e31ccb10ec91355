import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type BackfillResult, healScheduleId, scheduledRunId, scheduleId } from '../../src/contract.js';
import { Installation } from '../chaos/installation.js';
import { type Ended, repave } from '../cli/repave.js';
import { resultOfRun, runsOf } from '../support/scheduled-runs.js';
import { testTemporal } from '../support/temporal.js';

const MARK = randomBytes(4).toString('hex');
/** Of this test alone, since ids of workflows and schedules hold it. */
const named = (name: string): string => `${name}_${MARK}`;

/** A pipeline with a schedule, times of the past that Temporal is told to take, and what each run fills that was due in them. */
interface Case {
  readonly name: string;
  readonly by: 'hour' | 'week' | 'month' | 'quarter';
  readonly zone: string;
  /** What the header says, in braces. */
  readonly schedule: string;
  readonly asked: readonly (readonly [from: string, to: string])[];
  /** By the time the run was due: a key, or the first and the last of several. */
  readonly runs: Readonly<Record<string, string>>;
  /** What is in the ledger, and in the table, in the end. */
  readonly keys: readonly string[];
}

const CASES: readonly Case[] = [
  {
    // 02:05 is not there on the last Sunday of March. Of the two on that of October, Temporal takes the first alone, where the
    // zone is east of Greenwich: the next run, two hours later, takes both hours in.
    name: 'hours_berlin',
    by: 'hour',
    zone: 'Europe/Berlin',
    schedule: 'cron: "MM * * * *"',
    asked: [
      ['2024-03-30T23:00:00Z', '2024-03-31T03:00:00Z'],
      ['2024-10-26T23:00:00Z', '2024-10-27T04:00:00Z'],
    ],
    runs: {
      '2024-03-30T23:MMZ': '2024-03-30T22Z',
      '2024-03-31T00:MMZ': '2024-03-30T23Z',
      '2024-03-31T01:MMZ': '2024-03-31T00Z',
      '2024-03-31T02:MMZ': '2024-03-31T01Z',
      '2024-10-26T23:MMZ': '2024-10-26T22Z',
      '2024-10-27T00:MMZ': '2024-10-26T23Z',
      '2024-10-27T02:MMZ': '2024-10-27T00Z..2024-10-27T01Z',
      '2024-10-27T03:MMZ': '2024-10-27T02Z',
    },
    keys: [
      ...['2024-03-30T22Z', '2024-03-30T23Z', '2024-03-31T00Z', '2024-03-31T01Z'],
      ...['2024-10-26T22Z', '2024-10-26T23Z', '2024-10-27T00Z', '2024-10-27T01Z', '2024-10-27T02Z'],
    ],
  },
  {
    // West of Greenwich it takes both, and the second has an hour of its own.
    name: 'hours_new_york',
    by: 'hour',
    zone: 'America/New_York',
    schedule: 'cron: "MM * * * *"',
    asked: [
      ['2024-03-10T06:00:00Z', '2024-03-10T09:00:00Z'],
      ['2024-11-03T04:00:00Z', '2024-11-03T08:00:00Z'],
    ],
    runs: {
      '2024-03-10T06:MMZ': '2024-03-10T05Z',
      '2024-03-10T07:MMZ': '2024-03-10T06Z',
      '2024-03-10T08:MMZ': '2024-03-10T07Z',
      '2024-11-03T04:MMZ': '2024-11-03T03Z',
      '2024-11-03T05:MMZ': '2024-11-03T04Z',
      '2024-11-03T06:MMZ': '2024-11-03T05Z',
      '2024-11-03T07:MMZ': '2024-11-03T06Z',
    },
    keys: [
      ...['2024-03-10T05Z', '2024-03-10T06Z', '2024-03-10T07Z'],
      ...['2024-11-03T03Z', '2024-11-03T04Z', '2024-11-03T05Z', '2024-11-03T06Z'],
    ],
  },
  {
    name: 'weeks_utc',
    by: 'week',
    zone: 'UTC',
    schedule: 'cron: "15 3 * * 1"',
    asked: [['2020-12-21T00:00:00Z', '2021-01-19T00:00:00Z']],
    runs: {
      '2020-12-21T03:15Z': '2020-W51',
      '2020-12-28T03:15Z': '2020-W52',
      '2021-01-04T03:15Z': '2020-W53',
      '2021-01-11T03:15Z': '2021-W01',
      '2021-01-18T03:15Z': '2021-W02',
    },
    keys: ['2020-W51', '2020-W52', '2020-W53', '2021-W01', '2021-W02'],
  },
  {
    // Five past midnight of Monday, which by UTC is Sunday still.
    name: 'weeks_berlin',
    by: 'week',
    zone: 'Europe/Berlin',
    schedule: 'cron: "5 0 * * mon"',
    asked: [
      ['2020-12-27T00:00:00Z', '2021-01-11T00:00:00Z'],
      ['2024-03-24T00:00:00Z', '2024-04-01T00:00:00Z'],
      ['2024-10-20T00:00:00Z', '2024-10-28T00:00:00Z'],
    ],
    runs: {
      '2020-12-27T23:05Z': '2020-W52',
      '2021-01-03T23:05Z': '2020-W53',
      '2021-01-10T23:05Z': '2021-W01',
      '2024-03-24T23:05Z': '2024-W12',
      '2024-03-31T22:05Z': '2024-W13',
      '2024-10-20T22:05Z': '2024-W42',
      '2024-10-27T23:05Z': '2024-W43',
    },
    keys: ['2020-W52', '2020-W53', '2021-W01', '2024-W12', '2024-W13', '2024-W42', '2024-W43'],
  },
  {
    name: 'months_utc',
    by: 'month',
    zone: 'UTC',
    schedule: 'cron: "0 4 1 * *"',
    asked: [['2023-12-15T00:00:00Z', '2024-04-15T00:00:00Z']],
    runs: {
      '2024-01-01T04:00Z': '2023-12',
      '2024-02-01T04:00Z': '2024-01',
      '2024-03-01T04:00Z': '2024-02',
      '2024-04-01T04:00Z': '2024-03',
    },
    keys: ['2023-12', '2024-01', '2024-02', '2024-03'],
  },
  {
    // Ten past midnight: the 29th of February is over for ten minutes.
    name: 'months_new_york',
    by: 'month',
    zone: 'America/New_York',
    schedule: 'cron: "10 0 1 * *"',
    asked: [['2024-02-15T00:00:00Z', '2024-04-15T00:00:00Z']],
    runs: { '2024-03-01T05:10Z': '2024-02', '2024-04-01T04:10Z': '2024-03' },
    keys: ['2024-02', '2024-03'],
  },
  {
    // Ten to midnight of a 31st: the month that ends then is not over. Half of the months have no such day.
    name: 'months_31st',
    by: 'month',
    zone: 'America/New_York',
    schedule: 'cron: "50 23 31 * *", heal: 4',
    asked: [['2024-03-20T00:00:00Z', '2024-06-15T00:00:00Z']],
    runs: { '2024-04-01T03:50Z': '2024-01..2024-02', '2024-06-01T03:50Z': '2024-03..2024-04' },
    keys: ['2024-01', '2024-02', '2024-03', '2024-04'],
  },
  {
    name: 'months_back',
    by: 'month',
    zone: 'Europe/Berlin',
    schedule: 'cron: "0 4 1 * *", last: 2, lookback: 1',
    asked: [['2024-02-15T00:00:00Z', '2024-03-15T00:00:00Z']],
    runs: { '2024-03-01T03:00Z': '2023-12..2024-02' },
    keys: ['2023-12', '2024-01', '2024-02'],
  },
  {
    name: 'quarters_utc',
    by: 'quarter',
    zone: 'UTC',
    schedule: 'cron: "0 5 1 1,4,7,10 *"',
    asked: [['2023-12-15T00:00:00Z', '2024-10-15T00:00:00Z']],
    runs: {
      '2024-01-01T05:00Z': '2023-Q4',
      '2024-04-01T05:00Z': '2024-Q1',
      '2024-07-01T05:00Z': '2024-Q2',
      '2024-10-01T05:00Z': '2024-Q3',
    },
    keys: ['2023-Q4', '2024-Q1', '2024-Q2', '2024-Q3'],
  },
  {
    name: 'quarters_new_york',
    by: 'quarter',
    zone: 'America/New_York',
    schedule: 'cron: "5 0 1 */3 *"',
    asked: [['2023-12-31T00:00:00Z', '2024-04-02T00:00:00Z']],
    runs: { '2024-01-01T05:05Z': '2023-Q4', '2024-04-01T04:05Z': '2024-Q1' },
    keys: ['2023-Q4', '2024-Q1'],
  },
];

/** Healed as of now: its schedule is due on this day of each month, or the 28th, at a time that has just been. */
const NOW = { name: 'months_now', by: 'month', zone: 'UTC', schedule: 'cron: "JUST", heal: 4' } as const;
const PIPELINES = [...CASES, NOW];

describe('the schedules of other units than days', function () {
  this.timeout(300_000);
  let installation: Installation;
  /** Of the hour, and far from now: no run may come by itself while the schedules are made. */
  let minute: string;
  /** When {@link NOW} was due. */
  let justDue: Date;

  const filledIn = (text: string): string =>
    text
      .replace('MM', minute)
      .replace('JUST', `${justDue.getUTCMinutes()} ${justDue.getUTCHours()} ${justDue.getUTCDate()} * *`);

  const file = ({ name, by, zone, schedule }: (typeof PIPELINES)[number]): string => `-- repave
-- target: ${name}
-- partition: { column: at, by: ${by}, zone: ${zone} }
-- schedule: { ${filledIn(schedule)} }
SELECT :start AS at, :key AS key
`;

  before(async () => {
    const now = new Date();
    minute = now.getUTCMinutes() < 30 ? '45' : '15';
    justDue = new Date(Math.floor(now.getTime() / 60_000) * 60_000 - 60_000);
    // Not every month has the days behind it, and the run takes in all that ended since the last that was due.
    justDue.setUTCDate(Math.min(justDue.getUTCDate(), 28));
    installation = await Installation.open({
      pipelines: Object.fromEntries(PIPELINES.map((one) => [`${named(one.name)}.sql`, file(one)])),
      tables: PIPELINES.map(({ name }) => `CREATE TABLE ${name} (at timestamptz NOT NULL, key text NOT NULL);`).join(
        '\n',
      ),
    });
    await Promise.all([installation.startWorker(), deployed()]);
    // All at once: each test then looks at its own.
    await Promise.all(CASES.map(({ name, asked }) => backfill(scheduleId(named(name)), asked)));
  });
  after(async () => {
    const { schedules } = installation.client;
    await Promise.all(PIPELINES.map(({ name }) => schedules.remove(named(name)).catch(() => undefined)));
    await installation.close();
  });

  const command = async (...words: string[]): Promise<Ended> =>
    repave(installation.project, words, {
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      DATABASE_URL: installation.database.url,
      REPAVE_TASK_QUEUE: installation.taskQueue,
    });

  /** Makes the schedules as users do, and has them start nothing by themselves. */
  async function deployed(): Promise<void> {
    const { code, stderr } = await command('deploy', '--yes');
    assert.equal(code, 0, stderr);
    const { schedules } = installation.client;
    await Promise.all(PIPELINES.map(({ name }) => schedules.pause(named(name), 'the test says when')));
  }

  /** Has Temporal take the actions of times that are past. */
  async function backfill(schedule: string, asked: Case['asked']): Promise<void> {
    const times = asked.map(([from, to]) => ({
      start: new Date(from),
      end: new Date(to),
      overlap: 'ALLOW_ALL' as const,
    }));
    await installation.temporal.schedule.getHandle(schedule).backfill(times);
  }

  /** Has the runs of one time taken, the one that fills and the one that heals, and waits for both. */
  async function due(name: string, at: Date): Promise<Record<'day' | 'heal', BackfillResult>> {
    const asked = [[new Date(at.getTime() - 1_000).toISOString(), at.toISOString()]] as const;
    const pipeline = named(name);
    await Promise.all([scheduleId(pipeline), healScheduleId(pipeline)].map((id) => backfill(id, asked)));
    const [day, heal] = await Promise.all(
      (['scheduled', 'heal'] as const).map((kind) =>
        resultOfRun(installation.temporal, scheduledRunId(pipeline, kind, at)),
      ),
    );
    assert.ok(day && heal);
    return { day, heal };
  }

  const keysIn = async (sql: string, ...values: string[]): Promise<string[]> =>
    (await installation.database.sql<{ key: string }>(sql, values)).map(({ key }) => key);
  /** Keys of the ledger's fills, in the order in which they were committed. */
  const fillsOf = (name: string): Promise<string[]> =>
    keysIn('SELECT key FROM repave.fill WHERE pipeline = $1 ORDER BY id', named(name));
  const rowsOf = (name: string): Promise<string[]> => keysIn(`SELECT key FROM ${name} ORDER BY at`);

  for (const { name, by, zone, schedule, runs, keys } of CASES) {
    it(`by ${by} in ${zone}, ${schedule}: fill each partition once, none too few and none that is unfinished`, async () => {
      const times = Object.keys(runs).map((time) => time.replace('MM', minute));
      const ids = times.map((time) => scheduledRunId(named(name), 'scheduled', new Date(time)));
      assert.deepEqual(await runsOf(installation.temporal, scheduleId(named(name)), times.length), [...ids].sort());
      const results = await Promise.all(ids.map((id) => resultOfRun(installation.temporal, id)));
      const filled = results.map(({ first, last, notes }) =>
        first === last ? (first ?? notes.join()) : `${first}..${last}`,
      );
      assert.deepEqual(filled, Object.values(runs));
      assert.deepEqual((await fillsOf(name)).sort(), keys);
      assert.deepEqual(await rowsOf(name), keys);
    });
  }

  it('heal a month that is missing, and never the one that goes on: as of the last minutes of a 31st', async () => {
    const before = await fillsOf('months_31st');
    const { day, heal } = await due('months_31st', new Date('2024-09-01T03:50:00Z'));
    // The time before is that of 31 July.
    assert.deepEqual([day.first, day.last], ['2024-07', '2024-07']);
    assert.deepEqual([heal.first, heal.last, heal.filled], ['2024-05', '2024-06', 2]);
    assert.deepEqual((await fillsOf('months_31st')).slice(before.length).sort(), ['2024-05', '2024-06', '2024-07']);
  });

  it('heal a month that is missing or was deleted, and never the one that goes on: as of now', async () => {
    const month = (ago: number): string =>
      new Date(Date.UTC(justDue.getUTCFullYear(), justDue.getUTCMonth() - ago)).toISOString().slice(0, 7);
    const byHand = await installation.client.backfill({ pipeline: named(NOW.name), keys: [month(4), month(2)] });
    await byHand.result();
    await installation.database.sql(`DELETE FROM ${NOW.name} WHERE key = $1`, [month(2)]);
    const verified = await command('verify', named(NOW.name));
    assert.equal(verified.code, 1, verified.stderr);

    const { day, heal } = await due(NOW.name, justDue);
    assert.deepEqual([day.first, day.last], [month(1), month(1)]);
    assert.deepEqual([heal.first, heal.last, heal.filled], [month(3), month(2), 2]);
    assert.deepEqual((await fillsOf(NOW.name)).slice(2).sort(), [month(3), month(2), month(1)]);
    assert.deepEqual(await rowsOf(NOW.name), [month(4), month(3), month(2), month(1)]);
  });
});
