import assert from 'node:assert/strict';
import type { PipelineSchedule } from '../../src/pipeline/pipeline.js';
import { readSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';
import { parseSchedule } from '../../src/pipeline/schedule-setting.js';

const VIENNA = 'Europe/Vienna';

/** The schedule of a file with this setting. */
const read = async (setting: string, zone = VIENNA): Promise<PipelineSchedule | undefined> => {
  const header = ['repave', 'target: t', `partition: { column: d, by: day, zone: ${zone} }`, setting];
  const text = `${header.map((line) => `-- ${line}\n`).join('')}SELECT :date AS d`;
  const { schedule } = await readSqlPipeline({ name: 't', path: '/pipelines/t.sql', shown: 'pipelines/t.sql' }, text);
  return schedule;
};

describe('the setting `schedule`', () => {
  it('is a cron in the pipeline’s zone, or an object', async () => {
    assert.deepEqual(await read('schedule: 15 2 * * *'), { cron: '15 2 * * *', zone: VIENNA, last: 1 });
    assert.deepEqual(await read('schedule: { cron: "*/5  2 * * *", zone: UTC, last: 2, lookback: 0, heal: 30 }'), {
      cron: '*/5 2 * * *',
      zone: 'UTC',
      last: 2,
      lookback: 0,
      heal: 30,
    });
    assert.equal(await read('lookback: 2'), undefined);
  });

  const refused: readonly (readonly [setting: string, problem: RegExp])[] = [
    [
      'schedule: 61 2 * * *',
      /:4: schedule is "61 2 \* \* \*": expected a cron .*; its minute has "61", expected 0 to 59/,
    ],
    ['schedule: { cron: 15 2 * *, heal: 30 }', /schedule\.cron is "15 2 \* \*": .*it has 4 fields/],
    ['schedule: { heal: 30 }', /schedule\.cron is missing: expected a cron expression of five fields such as "15 2/],
    [
      'schedule: { cron: 15 2 * * *, zone: Europe/Viena }',
      /schedule\.zone is "Europe\/Viena".*Did you mean Europe\/Vienna/,
    ],
    ['schedule: { cron: 15 2 * * *, heal: 0 }', /schedule\.heal is 0 \(a number\): expected a whole number from 1/],
    ['schedule: { cron: 15 2 * * *, heel: 3 }', /unknown setting "heel".*heal/],
    [
      'schedule: */15 * * * *',
      /^pipelines\/t\.sql:4: .*must stand in quotes, as in `schedule: "\*\/15 \* \* \* \*"`\.$/,
    ],
    ['schedule: * * * * *', /:4: .*must stand in quotes, as in `schedule: "\*\/15 \* \* \* \*"`\.$/],
    ['schedule: { cron: */5 * * * *, heal: 3 }', /:4: .*must stand in quotes, as in `schedule: [^`]*`\.$/],
    ['schedule: @daily', /:4: .*a cron that begins with \* or @ must stand in quotes/],
    [
      'schedule: { cron: 15 2 * * 1,3,5, heal: 30 }',
      /:4: schedule\.cron is "15 2 \* \* 1": .*; a comma within braces ends it unless it stands in quotes, as in cron: "[^"]*"\.$/,
    ],
    ['schedule: { cron: 0 6,18 * * * }', /schedule\.cron is "0 6": .*a comma within braces ends it/],
    ['schedule: { cron: 15 2 * * mon,wed }', /a comma within braces ends it/],
    [
      'schedule: { cron: 15 2 * * *, zone: europe/vienna }',
      /schedule\.zone is "europe\/vienna".*Did you mean Europe\/Vienna\?$/,
    ],
    ['schedule: daily', /it has 1 field\./],
    ['schedule: 5', /schedule is 5 \(a number\): expected a cron expression .*, or \{ cron/],
  ];
  for (const [setting, problem] of refused) {
    it(`is not ${setting.replace('schedule: ', '')}, and says what is wrong`, () =>
      assert.rejects(read(setting), { type: 'InvalidPipeline', message: problem }));
  }

  it('has no zone of the partition that Temporal does not know as it is spelled', async () => {
    await assert.rejects(read('schedule: 15 2 * * *', 'europe/vienna'), {
      type: 'InvalidPipeline',
      message: /:4: Temporal's schedules take no europe\/vienna: write Europe\/Vienna as partition\.zone, or/,
    });
    const own = await read('schedule: { cron: 15 2 * * *, zone: Europe/Vienna }', 'europe/vienna');
    assert.equal(own?.zone, VIENNA);
    assert.equal((await read('schedule: 15 2 * * *', 'US/Eastern'))?.zone, 'US/Eastern');
    assert.throws(() => parseSchedule({ cron: '15 2 * * *' }, 'utc'), { type: 'InvalidInput', message: /write UTC/ });
  });

  it('is judged alike where it stands in no file, all that is wrong at once', () => {
    assert.deepEqual(parseSchedule({ cron: '5 * * * *', heal: 3 }, 'UTC'), {
      ...{ cron: '5 * * * *', zone: 'UTC', last: 1, heal: 3 },
    });
    assert.throws(() => parseSchedule({ cron: '5 24 * * *', heal: 0 }, 'UTC'), {
      type: 'InvalidInput',
      message: /cron is "5 24 \* \* \*": .*hour has "24".* heal is 0/,
    });
  });
});
