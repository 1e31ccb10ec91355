import assert from 'node:assert/strict';
import { keyAt, keysBetween } from '../../src/calendar/range.js';
import { windowOf } from '../../src/calendar/window.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, sqlPipeline, typescriptPipeline, withWorker } from '../support/fill.js';
import { setRoleDefaults } from '../support/superuser.js';

const TYPES = ['date', 'timestamp', 'timestamptz'] as const;

/** How a query bounds its source, whose `at` is an instant, and whose `wall` the clock's reading in the pipeline's zone. */
const CONDITIONS = {
  ':start': 'at >= :start AND at < :end',
  ':date': 'at >= :date AND at < :end_date',
  ':start on wall time': 'wall >= :start AND wall < :end',
  ':date on wall time': 'wall >= :date AND wall < :end_date',
  ':date on dates': 'wall::date >= :date AND wall::date < :end_date',
} as const;

/** What goes into a partition column of each type: casts are by the session's zone, which is the pipeline's. */
const VALUE = { date: 'at::date', timestamp: 'at::timestamp', timestamptz: 'at' } as const;

describe('fills by every unit, type and zone', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(() => test.drop());
  beforeEach(async () => {
    await emptyDatabase(test);
    // As a session of the role begins, wherever the pipeline's zone lies.
    await setRoleDefaults(test, { timezone: `'Asia/Tokyo'` });
  });

  const source = (zone: string, instants: string) =>
    test.sql(`CREATE TABLE source (at timestamptz NOT NULL, wall timestamp NOT NULL);
      INSERT INTO source SELECT at, at AT TIME ZONE '${zone}' FROM (${instants}) i(at)`);

  for (const zone of ['UTC', 'America/New_York', 'Asia/Kathmandu']) {
    for (const type of TYPES) {
      it(`the day has its first instant and its last, in ${zone} into ${type}, whichever parameters bound the query`, async () => {
        await test.sql(`CREATE TABLE target (at ${type} NOT NULL)`);
        await source(
          zone,
          `SELECT unnest(ARRAY['2024-02-29 00:00:00', '2024-02-29 21:30:00', '2024-02-29 23:59:59.999999', '2024-03-01 00:00:00']::timestamp[]) AT TIME ZONE '${zone}'`,
        );
        await withWorker(test, async (database) => {
          for (const [what, condition] of Object.entries(CONDITIONS)) {
            const pipeline = sqlPipeline(`SELECT ${VALUE[type]} AS at FROM source WHERE ${condition}`, {
              partition: { column: 'at', by: 'day', zone },
            });
            const first = await fill(database, fillRequest(pipeline, { key: '2024-02-29' }));
            const second = await fill(database, fillRequest(pipeline, { key: '2024-03-01' }));
            assert.deepEqual([first.rows, second.rows], [3, 1], what);
          }
        });
        assert.deepEqual(await test.sql('SELECT count(*)::int AS rows FROM target'), [{ rows: 4 }]);
      });
    }
  }

  for (const type of TYPES) {
    it(`days on which New York’s clock changes have 23 and 25 hours, into ${type}, whichever parameters bound the query`, async () => {
      const zone = 'America/New_York';
      await test.sql(`CREATE TABLE target (at ${type} NOT NULL)`);
      await source(
        zone,
        `SELECT generate_series('2024-03-09T00:00Z'::timestamptz, '2024-03-12T00:00Z', '1 hour')
         UNION SELECT generate_series('2024-11-02T00:00Z'::timestamptz, '2024-11-06T00:00Z', '1 hour')`,
      );
      await withWorker(test, async (database) => {
        for (const [what, condition] of Object.entries(CONDITIONS)) {
          const pipeline = sqlPipeline(`SELECT ${VALUE[type]} AS at FROM source WHERE ${condition}`, {
            partition: { column: 'at', by: 'day', zone },
          });
          const rows = [];
          for (const key of ['2024-03-09', '2024-03-10', '2024-11-03', '2024-11-04', '2024-03-10'])
            rows.push((await fill(database, fillRequest(pipeline, { key }))).rows);
          assert.deepEqual(rows, [24, 23, 25, 24, 23], what);
        }
      });
    });
  }

  it('hours over both of New York’s clock changes are 23 and 25, all different, and each has its rows once', async () => {
    const zone = 'America/New_York';
    await test.sql('CREATE TABLE target (at timestamptz NOT NULL, key text NOT NULL)');
    await source(
      zone,
      `SELECT generate_series('2024-03-10T05:00Z'::timestamptz, '2024-03-11T03:59Z', '20 minutes')
       UNION SELECT generate_series('2024-11-03T04:00Z'::timestamptz, '2024-11-04T04:59Z', '20 minutes')`,
    );
    const hours = { by: 'hour', zone } as const;
    const keys = ['2024-03-10', '2024-11-03'].map((day) => {
      const { start, end } = windowOf({ by: 'day', zone }, day);
      return [...keysBetween(hours, keyAt(hours, start), keyAt(hours, new Date(Date.parse(end) - 1).toISOString()))];
    });
    assert.deepEqual(
      keys.map((each) => each.length),
      [23, 25],
    );
    assert.equal(new Set(keys.flat()).size, 48);
    const pipeline = sqlPipeline('SELECT at, :key AS key FROM source WHERE at >= :start AND at < :end', {
      partition: { column: 'at', ...hours },
    });
    await withWorker(test, async (database) => {
      for (const key of keys.flat()) assert.equal((await fill(database, fillRequest(pipeline, { key }))).rows, 3);
    });
    assert.deepEqual(
      await test.sql(`SELECT count(*)::int AS rows, count(DISTINCT at)::int AS instants, count(DISTINCT key)::int AS keys,
                             bool_and(key = to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24"Z"')) AS right FROM target`),
      [{ rows: 144, instants: 144, keys: 48, right: true }],
    );
  });

  it('a night whose clock goes back over midnight: by dates each row once, and by instants what to do', async () => {
    const zone = 'America/St_Johns';
    // At 00:01 of 7 November 2010 it was 23:01 of the 6th once more.
    await source(zone, `SELECT generate_series('2010-11-06T02:30Z'::timestamptz, '2010-11-08T03:29Z', '10 minutes')`);
    await test.sql('CREATE TABLE target (at timestamp NOT NULL)');
    const by = { partition: { column: 'at', by: 'day', zone } } as const;
    const days = ['2010-11-06', '2010-11-07'];
    await withWorker(test, async (database) => {
      const byDates = sqlPipeline('SELECT wall AS at FROM source WHERE wall >= :date AND wall < :end_date', by);
      let rows = 0;
      for (const key of days) rows += (await fill(database, fillRequest(byDates, { key }))).rows;
      const [total] = await test.sql<{ rows: number }>('SELECT count(*)::int AS rows FROM source');
      assert.equal(rows, total?.rows);
      const byInstants = sqlPipeline('SELECT wall AS at FROM source WHERE at >= :start AND at < :end', by);
      const failure = await failsAs(
        fill(database, fillRequest(byInstants, { key: '2010-11-07' })),
        'RowsOutsideWindow',
      );
      assert.match(failure.message, /by what it gives as at: WHERE … >= :date AND … < :end_date\./);
    });
  });

  it('weeks, months, quarters and years of one table’s rows have each row once, into each type', async () => {
    const zone = 'Australia/Lord_Howe';
    await source(zone, `SELECT generate_series('2023-12-20T00:00Z'::timestamptz, '2024-04-10T00:00Z', '7 hours')`);
    const [total] = await test.sql<{ rows: number }>('SELECT count(*)::int AS rows FROM source');
    for (const type of TYPES) {
      for (const by of ['week', 'month', 'quarter', 'year'] as const) {
        await test.sql(`DROP TABLE IF EXISTS target; CREATE TABLE target (at ${type} NOT NULL)`);
        const grid = { by, zone };
        const pipeline = sqlPipeline(`SELECT ${VALUE[type]} AS at FROM source WHERE at >= :start AND at < :end`, {
          partition: { column: 'at', ...grid },
          name: `${type}_${by}`,
        });
        await withWorker(test, async (database) => {
          let rows = 0;
          for (const key of keysBetween(grid, keyAt(grid, '2023-12-20T00:00:00Z'), keyAt(grid, '2024-04-10T00:00:00Z')))
            rows += (await fill(database, fillRequest(pipeline, { key }))).rows;
          assert.equal(rows, total?.rows, `${type} by ${by}`);
        });
        assert.deepEqual(await test.sql('SELECT count(*)::int AS rows FROM target'), [total]);
      }
    }
  });

  describe('by hour', () => {
    const hourly = (zone: string, start?: string) =>
      sqlPipeline('SELECT :start AS at', { partition: { column: 'at', by: 'hour', zone }, start });

    const REFUSED: readonly (readonly [type: string, zone: string, start: string | undefined, message: RegExp])[] = [
      ['date', 'UTC', undefined, /by hour, and its partition column is a date/],
      [
        'timestamp',
        'America/New_York',
        undefined,
        /clock changes \(looked at from 1970.* to 2100\).*two hours would be one/,
      ],
      ['timestamp', 'America/New_York', '2024-01-01T00Z', /looked at from 2024-01-01T00:00:00Z/],
      // https://en.wikipedia.org/wiki/Daylight_saving_time_in_Brazil: for good since February 2019.
      ['timestamp', 'America/Sao_Paulo', '2019-01-01T00Z', /or a `start` of 2019-02-17T02Z or later/],
    ];
    for (const [type, zone, start, message] of REFUSED) {
      it(`a ${type} column in ${zone}${start ? ` from ${start} on` : ''} is InvalidPipeline, with the reason`, async () => {
        await test.sql(`CREATE TABLE target (at ${type} NOT NULL)`);
        await withWorker(test, async (database) => {
          const request = fillRequest(hourly(zone, start), { key: '2024-03-05T18Z' });
          assert.match((await failsAs(fill(database, request), 'InvalidPipeline')).message, message);
          await failsAs(registerPipeline(database, hourly(zone, start)), 'InvalidPipeline');
        });
        assert.deepEqual(await fills(test), []);
      });
    }

    for (const [zone, start] of [
      ['UTC', undefined],
      ['Asia/Kolkata', undefined],
      ['Asia/Kathmandu', '1990-01-01T00Z'],
      ['America/Sao_Paulo', '2019-02-17T02Z'],
    ] as const) {
      it(`a timestamp column in ${zone}${start ? ` from ${start} on` : ''} is filled, neighbours apart`, async () => {
        await test.sql('CREATE TABLE target (at timestamp NOT NULL, n int)');
        const rows = (n: number) =>
          sqlPipeline(
            `SELECT :start::timestamp + k * interval '15 minutes' AS at, ${n} AS n FROM generate_series(0, 3) k`,
            {
              partition: { column: 'at', by: 'hour', zone },
              start,
            },
          );
        await withWorker(test, async (database) => {
          for (const [i, key] of ['2024-03-05T17Z', '2024-03-05T18Z', '2024-03-05T19Z', '2024-03-05T18Z'].entries()) {
            const outcome = await fill(database, fillRequest(rows(i), { key }));
            assert.deepEqual([outcome.rows, outcome.deleted], [4, i === 3 ? 4 : 0]);
          }
          const late = typescriptPipeline(({ window }) => [{ at: window.end.replace('Z', ''), n: 9 }], {
            partition: { column: 'at', by: 'hour', zone: 'UTC' },
          });
          await failsAs(fill(database, fillRequest(late, { key: '2024-03-05T18Z' })), 'RowsOutsideWindow');
        });
        assert.deepEqual(await test.sql('SELECT n, count(*)::int AS rows FROM target GROUP BY n ORDER BY n'), [
          { n: 0, rows: 4 },
          { n: 2, rows: 4 },
          { n: 3, rows: 4 },
        ]);
      });
    }
  });
});
