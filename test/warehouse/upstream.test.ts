import assert from 'node:assert/strict';
import type { PartitionState } from '../../src/contract.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { adoptWindows } from '../../src/warehouse/adopt.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { stateOf } from '../../src/warehouse/partition-state.js';
import { partitionStates } from '../../src/warehouse/partition-states.js';
import { pipelineCounts } from '../../src/warehouse/partitions.js';
import { prune } from '../../src/warehouse/prune.js';
import { comesAfter } from '../../src/warehouse/upstream.js';
import { verifyWindows } from '../../src/warehouse/verify.js';
import { until } from '../chaos/until.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, sqlPipeline, typescriptPipeline } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { withStatements } from '../support/statements.js';

const TABLES = `
  CREATE TABLE sales (sold_on date NOT NULL, units int NOT NULL);
  CREATE TABLE daily (day date NOT NULL, units bigint);
  CREATE TABLE weekly (week date NOT NULL, units bigint);
  CREATE TABLE yearly (year date NOT NULL, units bigint);
  CREATE TABLE brake (on_day date);
  CREATE FUNCTION braked() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    WHILE EXISTS (SELECT FROM brake) LOOP PERFORM pg_sleep(0.02); END LOOP;
    RETURN 0;
  END $$;`;

// From a Thursday on: the first week has four days of it.
const daily = sqlPipeline('SELECT :date AS day, (SELECT sum(units) FROM sales WHERE sold_on = :date) AS units', {
  name: 'daily',
  target: { table: 'daily' },
  start: '2024-01-04',
});
const DAYS = ['2024-01-04', '2024-01-05', '2024-01-06', '2024-01-07'];
const WEEK = '2024-W01';
const ofWeek = {
  name: 'weekly',
  target: { table: 'weekly' },
  partition: { column: 'week', by: 'week', zone: 'UTC' },
  start: WEEK,
  after: ['daily'],
} as const;
const weekly = sqlPipeline(
  'SELECT :date AS week, sum(units) + braked() AS units FROM daily WHERE day >= :date AND day < :end_date',
  ofWeek,
);
const yearly = sqlPipeline(
  'SELECT :date AS year, sum(units) AS units FROM weekly WHERE week >= :date AND week < :end_date',
  {
    name: 'yearly',
    target: { table: 'yearly' },
    partition: { column: 'year', by: 'year', zone: 'UTC' },
    after: ['weekly'],
  },
);

describe('a pipeline that comes after others', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 4 });
    await test.sql(TABLES);
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await test.sql(`TRUNCATE sales, daily, weekly, yearly, brake, repave.fill, repave.partition, repave.failure, repave.claim, repave.pipeline;
      INSERT INTO sales SELECT d::date, 1 FROM generate_series(date '2024-01-01', date '2024-01-31', interval '1 day') d`);
    for (const pipeline of [daily, weekly, yearly]) await registerPipeline(database, pipeline);
  });

  const filled = (pipeline: Pipeline, key: string) => fill(database, fillRequest(pipeline, { key }));
  const daysFilled = async () => {
    for (const key of DAYS) await filled(daily, key);
  };
  const stateIn = async (pipeline: Pipeline, key: string): Promise<PartitionState> => {
    const after = await comesAfter(database, pipeline);
    const rows = await partitionStates(database, pipeline.name, [{ from: key, to: key }], after);
    return stateOf(rows.get(key), pipeline.fingerprint);
  };
  const counts = async (pipeline: Pipeline) => {
    const after = await comesAfter(database, pipeline);
    const {
      filled: whole,
      failed,
      outdated,
    } = await pipelineCounts(database, pipeline.name, pipeline.fingerprint, after);
    return { filled: whole, failed, outdated };
  };
  /** As a run leaves it that has failed: what was filled before stands. */
  const failed = (pipeline: Pipeline, key: string) =>
    test.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, run, attempt, fence) VALUES ($1, $2, 'failed', 'r', 1, 1)
       ON CONFLICT (pipeline, key) DO UPDATE SET outcome = 'failed'`,
      [pipeline.name, key],
    );
  const refused = async (pipeline: Pipeline, key: string, because: RegExp) => {
    const { message } = await failsAs(filled(pipeline, key), 'SourceNotReady');
    assert.match(message, because);
    return message;
  };

  it('is filled once all that overlap are, from their start on, and says which are not, and why', async () => {
    await filled(daily, '2024-01-05');
    await failed(daily, '2024-01-06');
    await refused(
      weekly,
      WEEK,
      /weekly 2024-W01 comes after daily 2024-01-04 \(missing\), daily 2024-01-06 \(failed\), daily 2024-01-07 \(missing\)\./,
    );
    assert.equal(await stateIn(weekly, WEEK), 'missing', 'no row, no entry');
    await daysFilled();
    assert.equal((await filled(weekly, WEEK)).rows, 1);
    assert.equal(await stateIn(weekly, WEEK), 'filled');
    assert.deepEqual(await test.sql('SELECT units::int FROM weekly'), [{ units: 4 }]);
    assert.deepEqual(await counts(weekly), { filled: 1, failed: 0, outdated: 0 });
  });

  it('is outdated once one of them is filled again, and never by a fill of another week', async () => {
    await daysFilled();
    await filled(weekly, WEEK);
    await filled(daily, '2024-01-08');
    assert.equal(await stateIn(weekly, WEEK), 'filled');
    await filled(daily, '2024-01-07');
    assert.equal(await stateIn(weekly, WEEK), 'outdated');
    assert.deepEqual(await counts(weekly), { filled: 0, failed: 0, outdated: 1 });
    await filled(weekly, WEEK);
    assert.equal(await stateIn(weekly, WEEK), 'filled');
  });

  it('is not moved by a fill that found nothing changed, nor by one that failed', async () => {
    const same = { ...daily, skipUnchanged: true };
    await daysFilled();
    await filled(weekly, WEEK);
    assert.equal((await filled(same, '2024-01-05')).unchanged, true);
    await failed(daily, '2024-01-06');
    assert.equal(await stateIn(weekly, WEEK), 'filled');
    await test.sql(`UPDATE sales SET units = 2 WHERE sold_on = '2024-01-05'`);
    assert.equal((await filled(same, '2024-01-05')).unchanged, undefined);
    assert.equal(await stateIn(weekly, WEEK), 'outdated');
  });

  it('is moved by a fill of rows that verify had found changed, though it found nothing changed itself', async () => {
    const same = { ...daily, skipUnchanged: true };
    const request = fillRequest(same, { key: '2024-01-05' });
    await daysFilled();
    await test.sql(`INSERT INTO daily VALUES ('2024-01-05', 666)`);
    await filled(weekly, WEEK);
    const { findings } = await verifyWindows(database, { ...request, windows: [request.window], dryRun: false });
    assert.equal(findings.length, 1);
    await test.sql('DELETE FROM daily WHERE units = 666');
    assert.equal((await fill(database, request)).unchanged, true);
    assert.equal(await stateIn(weekly, WEEK), 'outdated');
    await filled(weekly, WEEK);
    assert.deepEqual(await test.sql('SELECT units::int FROM weekly'), [{ units: 4 }]);
    assert.equal((await filled(same, '2024-01-05')).unchanged, true);
    assert.equal(await stateIn(weekly, WEEK), 'filled', 'the next one moves nothing');
  });

  for (const [how, pipeline] of [
    ['in SQL', weekly],
    [
      'in TypeScript, whose rows are spooled',
      typescriptPipeline(async function* rows() {
        const [row] = await test.sql<{ units: number }>('SELECT sum(units)::int AS units FROM daily WHERE day <= $1', [
          '2024-01-07',
        ]);
        await test.sql('SELECT braked()');
        yield { week: '2024-01-01', units: row?.units };
      }, ofWeek),
    ],
  ] as const) {
    it(`is outdated where one of them commits while it runs, ${how}`, async () => {
      await registerPipeline(database, pipeline);
      await daysFilled();
      await test.sql(`INSERT INTO brake VALUES ('2024-01-01')`);
      const running = filled(pipeline, WEEK);
      await until('its rows to be read', async () => {
        const [row] = await asSuperuser<{ n: number }>(
          test,
          `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
        );
        return row?.n === 1;
      });
      await test.sql(`UPDATE sales SET units = 10 WHERE sold_on = '2024-01-07'`);
      await filled(daily, '2024-01-07');
      await test.sql('DELETE FROM brake');
      await running;
      assert.deepEqual(await test.sql('SELECT units::int FROM weekly'), [{ units: 4 }], 'it has the old day');
      assert.equal(await stateIn(pipeline, WEEK), 'outdated');
      await filled(pipeline, WEEK);
      assert.deepEqual(await test.sql('SELECT units::int FROM weekly'), [{ units: 13 }]);
      assert.equal(await stateIn(pipeline, WEEK), 'filled');
    });
  }

  it('waits until those it comes after are not older than theirs, however far up', async () => {
    const ofYear = { ...yearly, start: '2024' };
    await registerPipeline(database, { ...weekly, start: WEEK });
    await daysFilled();
    await filled(weekly, WEEK);
    // The other weeks of the year are no matter here.
    await test.sql(`INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence, upstream)
      SELECT 'weekly', to_char(d, 'IYYY"-W"IW'), 'filled', 0, '${weekly.fingerprint}', now(), 'r', 1, 1, NULL
        FROM generate_series(date '2024-01-08', date '2024-12-30', interval '7 days') d`);
    const message = await refused(ofYear, '2024', /weekly 2024-W02 \(outdated\)/);
    assert.doesNotMatch(message, /2024-W01/);
    await filled(daily, '2024-01-04');
    await refused(ofYear, '2024', /yearly 2024 comes after weekly 2024-W01 \(outdated\)/);
    await filled(weekly, WEEK);
    const changed = { ...daily, fingerprint: 'v1:another' };
    await registerPipeline(database, changed);
    await refused(ofYear, '2024', /yearly 2024 comes after daily 2024-01-04 \(outdated\)/);
  });

  it('asks only for those that are over where its own window is not', async () => {
    // By a clock that shows some time of the day: no day ends meanwhile.
    const byDay = new Date().getUTCHours() >= 6 && new Date().getUTCHours() < 18;
    const [zone, behind] = byDay ? ['UTC', 0] : ['Etc/GMT+12', 12];
    const today = new Date(Date.now() - behind * 3_600_000);
    const year = String(today.getUTCFullYear());
    const yesterday = new Date(today.getTime() - 86_400_000).toISOString().slice(0, 10);
    const days = { ...daily, partition: { ...daily.partition, zone }, start: yesterday };
    const ofDays = { ...yearly, partition: { ...yearly.partition, zone }, after: ['daily'] };
    await registerPipeline(database, days);
    await registerPipeline(database, ofDays);
    // On a New Year's Day none of the year is over.
    if (yesterday.startsWith(year)) await refused(ofDays, year, new RegExp(`daily ${yesterday} .missing.\\.`));
    await filled(days, yesterday);
    const outcome = await filled(ofDays, year);
    assert.deepEqual(outcome.warnings, ['unfinished']);
  });

  it('waits not, and fails, where nobody has registered what it comes after', async () => {
    await test.sql(`DELETE FROM repave.pipeline WHERE name = 'daily'`);
    const { message, final } = await failsAs(filled(weekly, WEEK), 'SourceNotReady');
    assert.match(message, /comes after daily \(not registered\), and waits for nothing that could come/);
    assert.ok(final);
  });

  it('is outdated where it is not known what it was filled from: by an older version, before `after` was set, or adopted', async () => {
    await daysFilled();
    await filled({ ...weekly, after: undefined }, WEEK);
    assert.equal(await stateIn(weekly, WEEK), 'outdated');
    assert.equal(await stateIn({ ...weekly, after: undefined }, WEEK), 'filled', 'without `after` nothing is asked');
    await test.sql(`DELETE FROM repave.partition WHERE pipeline = 'weekly'`);
    const request = fillRequest(weekly, { key: WEEK });
    await adoptWindows(database, {
      pipeline: weekly,
      fingerprint: weekly.fingerprint,
      run: 'adopted',
      startedBy: 'a test',
      windows: [request.window],
      empty: true,
      dryRun: false,
      signal: request.signal,
    });
    assert.equal(await stateIn(weekly, WEEK), 'outdated');
  });

  it('sees fills of an older version, which keeps no id of them', async () => {
    await daysFilled();
    await test.sql(`UPDATE repave.partition SET fill = NULL WHERE pipeline = 'daily' AND key = '2024-01-04'`);
    await filled(weekly, WEEK);
    assert.equal(await stateIn(weekly, WEEK), 'filled');
    for (const key of ['2024-01-04', '2024-01-05']) {
      const [before] = await test.sql<{ fill: string | null }>(
        `SELECT fill FROM repave.partition WHERE pipeline = 'daily' AND key = $1`,
        [key],
      );
      await filled(daily, key);
      await test.sql(`UPDATE repave.partition SET fill = $2 WHERE pipeline = 'daily' AND key = $1`, [
        key,
        before?.fill,
      ]);
      assert.equal(await stateIn(weekly, WEEK), 'outdated', key);
      await filled(weekly, WEEK);
      assert.equal(await stateIn(weekly, WEEK), 'filled');
    }
  });

  it('keeps what it knows where the ledger is pruned behind a fill that found nothing changed', async () => {
    const key = '2024-01-05';
    await daysFilled();
    await filled(weekly, WEEK);
    const [before] = await test.sql<{ fill: string }>(
      `SELECT fill FROM repave.partition WHERE pipeline = 'daily' AND key = $1`,
      [key],
    );
    await test.sql('UPDATE sales SET units = 2 WHERE sold_on = $1', [key]);
    await filled(daily, key);
    await test.sql(`UPDATE repave.partition SET fill = $2 WHERE pipeline = 'daily' AND key = $1`, [key, before?.fill]);
    assert.equal((await filled({ ...daily, skipUnchanged: true }, key)).unchanged, true);
    assert.equal(await stateIn(weekly, WEEK), 'outdated', 'an older version has filled the day');
    await test.sql(`UPDATE repave.fill SET filled_at = filled_at - interval '1 year'`);
    const owner = await openDatabase(test.ownerUrl, { fills: 1 });
    const signal = new AbortController().signal;
    for await (const page of prune(owner, { keepMs: 86_400_000, dryRun: false, signal })) assert.ok(page);
    await owner.close();
    const left = await test.sql(`SELECT unchanged FROM repave.fill WHERE pipeline = 'daily' AND key = $1 ORDER BY id`, [
      key,
    ]);
    assert.deepEqual(left, [{ unchanged: false }, { unchanged: true }]);
    assert.equal(await stateIn(weekly, WEEK), 'outdated');
  });

  it('keeps what it knows where a pipeline it comes after has another name', async () => {
    await daysFilled();
    await filled(weekly, WEEK);
    await test.sql(`SELECT repave.carry_over('daily', 'by_day')`);
    assert.equal(await stateIn({ ...weekly, after: ['by_day'] }, WEEK), 'filled');
  });

  it('costs a pipeline without `after` no statement', async () => {
    const seen: string[] = [];
    const hooks = { before: async ({ text }: { readonly text: string }) => void seen.push(text) };
    await withStatements(hooks, () => filled(daily, '2024-01-04'));
    assert.ok(seen.length > 0);
    assert.deepEqual(
      seen.filter((text) => /FROM repave\.pipeline ORDER BY|o\.upstream/.test(text)),
      [],
    );
  });
});
