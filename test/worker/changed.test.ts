import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { BackfillFailed } from '../../src/client.js';
import type { BackfillInput, BackfillResult } from '../../src/contract.js';
import { type Bed, makeBed } from '../support/bed.js';
import { until } from '../support/fill.js';
import { withClient } from '../support/template.js';

const header = (target: string, settings: string): string => `-- repave
-- target: ${target}
-- partition: { column: day, by: day }
-- start: 2024-01-01
${settings}
SELECT sold_on AS day, count(*) + sum(quantity) + held(:key) AS n FROM sales WHERE sold_on = :date GROUP BY sold_on
`;

const TYPESCRIPT = `
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { definePipeline } from 'repave';
export default definePipeline({
  target: 'daily_ts',
  partition: { column: 'day', by: 'day' },
  start: '2024-01-01',
  changed: async ({ key }) => JSON.parse(readFileSync(join(process.env.REPAVE_PROJECT ?? '', 'versions.json'), 'utf8'))[key] ?? 0,
  async *rows({ key }) { yield { day: key, n: 1 }; },
});
`;

describe('days whose source has changed', function () {
  this.timeout(300_000);
  let bed: Bed;
  let rows: string;
  let newest: string;
  let typescript: string;
  let blind: string;

  before(async () => {
    bed = await makeBed({ pipeline: header('daily', '-- changed: rows') });
    await bed.database.sql(`
      ALTER TABLE sales ADD COLUMN updated_at timestamptz NOT NULL DEFAULT '2024-05-01', ADD COLUMN id int GENERATED ALWAYS AS IDENTITY;
      CREATE TABLE daily_newest (LIKE daily);
      CREATE TABLE daily_blind (LIKE daily);
      CREATE TABLE daily_ts (LIKE daily);`);
    rows = bed.pipeline;
    [newest, typescript, blind] = ['newest', 'ts', 'blind'].map((kind) => `${rows}_${kind}`) as [
      string,
      string,
      string,
    ];
    const write = (file: string, text: string): void => writeFileSync(join(bed.project, 'pipelines', file), text);
    const byTime = '-- changed: "SELECT max(updated_at) FROM sales WHERE sold_on = :date"';
    write(`${newest}.sql`, header('daily_newest', byTime));
    write(`${blind}.sql`, header('daily_blind', ''));
    write(`${typescript}.ts`, TYPESCRIPT);
    writeFileSync(join(bed.project, 'versions.json'), '{}');
    await bed.worker();
  });
  after(() => bed.close());

  const run = async (pipeline: string, input: Omit<BackfillInput, 'pipeline'>): Promise<BackfillResult> =>
    (await bed.client.backfill({ pipeline, ...input })).result();
  const planned = async (pipeline: string, input: Omit<BackfillInput, 'pipeline'> = {}): Promise<readonly string[]> =>
    (await run(pipeline, { only: ['changed'], dryRun: true, ...input })).keys ?? [];
  const target = async (table: string, key: string): Promise<number | undefined> =>
    (await bed.database.sql<{ n: number }>(`SELECT n::int FROM ${table} WHERE day = $1`, [key]))[0]?.n;
  const sell = (key: string) =>
    bed.database.sql(
      `UPDATE sales SET quantity = quantity + 1 WHERE id = (SELECT min(id) FROM sales WHERE sold_on = $1)`,
      [key],
    );

  /** Waits until the fill that is held has asked for the version, and reads the rows. */
  const isReading = () =>
    until('a fill that is held', async () =>
      withClient(bed.database.superuserUrl, async (superuser) => {
        const reading = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep' AND application_name LIKE 'repave %/%' AND query LIKE '%held(%'`;
        return (await superuser.query(reading)).rows.length > 0;
      }),
    );

  it('are found and filled, what commits late and what commits while the fill runs too, and no others', async () => {
    const late = new pg.Client(bed.database.ownerUrl);
    await late.connect();
    const month = { from: '2024-01-01', to: '2024-01-10' };
    try {
      await late.query('BEGIN');
      await late.query(
        `UPDATE sales SET quantity = 5, updated_at = '2023-01-01' WHERE id = (SELECT min(id) FROM sales WHERE sold_on = '2024-01-03')`,
      );
      assert.equal((await run(newest, month)).filled, 10);
      await bed.hold('2024-01-05');
      const filling = await bed.client.backfill({ pipeline: rows, ...month });
      await until('nine days', async () => (await filling.progress()).filled === 9);
      await isReading();
      await sell('2024-01-05');
      await bed.letGo('2024-01-05');
      assert.equal((await filling.result()).filled, 10);
      await late.query('COMMIT');
    } finally {
      await late.end();
    }
    // The greatest time says nothing of either; nor is the fill's own snapshot asked.
    assert.deepEqual(await planned(newest), []);
    assert.deepEqual(await planned(rows), ['2024-01-03', '2024-01-05']);
    const plan = await run(rows, { only: ['changed'], dryRun: true });
    assert.deepEqual(plan.counts, { failed: 0, missing: 0, outdated: 0, changed: 2, filled: 0 });
    assert.match(plan.plan ?? '', /-changed2-/);
    assert.equal(await target('daily', '2024-01-03'), 6);
    const exact = await run(rows, { only: ['changed'], plan: plan.plan });
    assert.deepEqual([exact.filled, exact.first, exact.last], [2, '2024-01-03', '2024-01-05']);
    assert.deepEqual([await target('daily', '2024-01-03'), await target('daily', '2024-01-05')], [10, 7]);
    assert.equal((await run(rows, { only: ['changed'] })).total, 0);
  });

  it('are filled beside those that are missing, in one backfill of a list', async () => {
    await run(rows, { from: '2024-02-01', to: '2024-02-05' });
    await sell('2024-02-02');
    await sell('2024-02-05');
    const input = { from: '2024-02-01', to: '2024-02-07', only: ['missing', 'changed'] } as const;
    const { counts, keys } = await run(rows, { ...input, dryRun: true });
    assert.deepEqual([counts?.missing, counts?.changed], [2, 2]);
    assert.deepEqual(keys, ['2024-02-02', '2024-02-05', '2024-02-06', '2024-02-07']);
    assert.equal((await run(rows, input)).filled, 4);
    // Without `changed` no source is asked.
    await sell('2024-02-01');
    assert.equal((await run(rows, { ...input, only: ['missing'] })).total, 0);
  });

  it('filled before the pipeline could say so are filled once', async () => {
    await run(rows, { from: '2024-02-11', to: '2024-02-13' });
    await bed.database.sql(
      `UPDATE repave.partition SET source_version = NULL WHERE pipeline = $1 AND key = '2024-02-12'`,
      [rows],
    );
    assert.deepEqual(await planned(rows, { from: '2024-02-11', to: '2024-02-13' }), ['2024-02-12']);
    assert.equal((await run(rows, { from: '2024-02-11', to: '2024-02-13', only: ['changed'] })).filled, 1);
    assert.deepEqual(await planned(rows, { from: '2024-02-11', to: '2024-02-13' }), []);
  });

  it('are asked of a function', async () => {
    const days = { from: '2024-03-01', to: '2024-03-03' };
    await run(typescript, days);
    assert.deepEqual(await planned(typescript), []);
    writeFileSync(join(bed.project, 'versions.json'), '{ "2024-03-02": "v2" }');
    assert.deepEqual(await planned(typescript), ['2024-03-02']);
    assert.equal((await run(typescript, { only: ['changed'] })).filled, 1);
    assert.deepEqual(await planned(typescript), []);
  });

  it('are asked of no pipeline that cannot say', async () => {
    await assert.rejects(
      run(blind, { only: ['missing', 'changed'] }),
      (error) =>
        error instanceof BackfillFailed && error.type === 'InvalidInput' && error.message.includes('has no `changed`'),
    );
  });

  for (const [what, again, filled] of [
    ['not again where another run has filled them meanwhile', false, 0],
    ['again where their source has changed since that read it', true, 1],
  ] as const) {
    it(`are filled ${what}`, async () => {
      const key = again ? '2024-03-12' : '2024-03-11';
      await run(rows, { keys: [key] });
      await sell(key);
      await bed.hold(key);
      const other = await bed.client.partition({ pipeline: rows, key });
      await isReading();
      const handle = await bed.client.backfill({ pipeline: rows, keys: [key], only: ['changed'] });
      await until('the wait', async () => (await handle.progress()).busy === 1);
      if (again) await sell(key);
      await bed.letGo(key);
      await other.result();
      assert.equal((await handle.result()).filled, filled);
      assert.deepEqual(await planned(rows, { keys: [key] }), []);
    });
  }

  it('late rows of an earlier day are taken in by lookback, whatever the pipeline can say', async () => {
    await bed.database.sql(
      `INSERT INTO sales (sold_on, quantity)
       SELECT d::date, 1 FROM generate_series(now() AT TIME ZONE 'UTC' - interval '6 days', now() AT TIME ZONE 'UTC', interval '1 day') d`,
    );
    const first = await run(blind, { last: 3 });
    const dayBefore = (day = '', days = 1) => new Date(Date.parse(day) - days * 86_400_000).toISOString().slice(0, 10);
    // A day that is in the wide range below, also where another day begins meanwhile.
    const earlier = dayBefore(first.last);
    assert.deepEqual([first.filled, await target('daily_blind', earlier)], [3, 2]);
    await bed.database.sql('INSERT INTO sales (sold_on, quantity) VALUES ($1, 1)', [earlier]);
    assert.equal((await run(blind, { last: 1 })).filled, 1);
    assert.equal(await target('daily_blind', earlier), 2);
    const wide = await run(blind, { last: 1, lookback: 2 });
    assert.deepEqual([wide.filled, wide.first], [3, dayBefore(wide.last, 2)]);
    assert.equal(await target('daily_blind', earlier), 4);
  });
});
