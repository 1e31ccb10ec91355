import assert from 'node:assert/strict';
import { keysBetween } from '../../src/calendar/range.js';
import { windowOf } from '../../src/calendar/window.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { stateOf } from '../../src/warehouse/partition-state.js';
import { type AdoptionRequest, adoptWindows, countOutside, oldestInstant } from '../../src/warehouse/adopt.js';
import type { Database } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { bounds } from '../../src/warehouse/partition-type.js';
import { partitionRows } from '../../src/warehouse/partitions.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, fills, ledgerRows, sqlPipeline, until, withWorker } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const pipeline = sqlPipeline('SELECT :date::date AS day, k AS n FROM generate_series(1, 3) k');
const signal = new AbortController().signal;

function adoption(from: string, to: string, options: Partial<AdoptionRequest> = {}): AdoptionRequest {
  const of: Pipeline = options.pipeline ?? pipeline;
  const windows = [...keysBetween(of.partition, from, to)].map((key) => windowOf(of.partition, key));
  const { fingerprint } = of;
  const by = { run: 'adopt/test', startedBy: 'ana@laptop' };
  return { pipeline: of, fingerprint, windows, ...by, empty: false, dryRun: false, signal, ...options };
}

describe('adopting what a table holds', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n int); CREATE INDEX ON target (day)');
  });
  after(() => test.drop());
  beforeEach(async () => {
    await test.sql(`TRUNCATE target, repave.pipeline, repave.partition, repave.fill, repave.failure, repave.claim`);
    // 1 row on the 1st, 2 on the 2nd, …; none on the 5th.
    await test.sql(`INSERT INTO target SELECT day, n FROM generate_series(date '2024-01-01', '2024-01-10', '1 day') day,
                      generate_series(1, extract(day FROM day)::int) n WHERE day <> '2024-01-05'`);
  });

  const asWorker = <T>(use: (database: Database) => Promise<T>): Promise<T> => withWorker(test, use);
  const rowsOfTarget = () => test.sql('SELECT ctid::text, xmin::text, target FROM target ORDER BY ctid');

  it('counts each partition and records it as filled by today’s pipeline, touching no row', () =>
    asWorker(async (database) => {
      await registerPipeline(database, pipeline);
      const before = await rowsOfTarget();
      const adopted = await adoptWindows(database, adoption('2024-01-02', '2024-01-06'));
      const keys = ['2024-01-02', '2024-01-03', '2024-01-04', '2024-01-06'];
      assert.deepEqual(adopted, { keys, rows: 2 + 3 + 4 + 6, empty: 1, known: 0 });
      assert.deepEqual(await rowsOfTarget(), before);

      const rows = await partitionRows(database, 'target');
      assert.deepEqual([...rows.keys()], keys);
      for (const row of rows.values()) {
        assert.equal(stateOf(row, pipeline.fingerprint), 'filled');
        assert.equal(row.rows, Number(row.key.slice(-2)));
      }
      const [entry] = await test.sql(
        `SELECT f.key, f.run, f.activity, f.attempt, f.rows_deleted, f.rows_inserted, f.checks, f.warnings, f.adopted, f.fingerprint, f.started_by,
                f.window_start, f.window_end, f.filled_at = p.filled_at AND f.fence = p.fence AS same
           FROM repave.fill f JOIN repave.partition p USING (pipeline, key) ORDER BY key LIMIT 1`,
      );
      assert.deepEqual(entry, {
        key: '2024-01-02',
        run: 'adopt/test',
        activity: 'adopt',
        attempt: 1,
        rows_deleted: '0',
        rows_inserted: '2',
        checks: [],
        warnings: [],
        adopted: true,
        fingerprint: pipeline.fingerprint,
        started_by: 'ana@laptop',
        window_start: new Date('2024-01-02'),
        window_end: new Date('2024-01-03'),
        same: true,
      });
      assert.deepEqual(await test.sql('SELECT FROM repave.claim'), []);
    }));

  it('leaves alone what the ledger knows, and is safe to run again', () =>
    asWorker(async (database) => {
      await registerPipeline(database, pipeline);
      await fill(database, fillRequest(pipeline, { key: '2024-01-02' }));
      const lost = fillRequest(sqlPipeline('SELECT 1/0'), { key: '2024-01-03' });
      await assert.rejects(fill(database, lost));
      const failure = { type: 'DataError', message: 'no', attempt: 1 } as const;
      await recordFailure(database, { pipeline: 'target', key: '2024-01-03', run: lost.owner.run, ...failure });
      const before = await ledgerRows(test);

      const first = await adoptWindows(database, adoption('2024-01-01', '2024-01-04'));
      assert.deepEqual([first.keys, first.known], [['2024-01-01', '2024-01-04'], 2]);
      const after = await ledgerRows(test);
      assert.deepEqual(
        after.filter(({ run }) => run !== 'adopt/test'),
        before,
      );
      const again = await adoptWindows(database, adoption('2024-01-01', '2024-01-04', { run: 'adopt/again' }));
      assert.deepEqual([again.keys, again.known, again.rows], [[], 4, 0]);
      assert.deepEqual(await ledgerRows(test), after);
    }));

  it('records partitions without rows only where that is asked for', () =>
    asWorker(async (database) => {
      await registerPipeline(database, pipeline);
      const adopted = await adoptWindows(database, adoption('2024-01-05', '2024-01-05', { empty: true }));
      assert.deepEqual(adopted, { keys: ['2024-01-05'], rows: 0, empty: 0, known: 0 });
      assert.equal((await partitionRows(database, 'target')).get('2024-01-05')?.rows, 0);
    }));

  it('says in a dry run what it would record, and records nothing', () =>
    asWorker(async (database) => {
      const dry = await adoptWindows(database, adoption('2024-01-01', '2024-01-10', { dryRun: true }));
      assert.deepEqual([dry.keys.length, dry.rows, dry.empty], [9, 50, 1]);
      for (const table of ['fill', 'partition', 'claim', 'pipeline']) {
        assert.deepEqual(await test.sql(`SELECT FROM repave.${table}`), [], table);
      }
    }));

  it('a fill afterwards, and its failure, come after it', () =>
    asWorker(async (database) => {
      await registerPipeline(database, pipeline);
      await adoptWindows(database, adoption('2024-01-01', '2024-01-02'));
      await fill(database, fillRequest(pipeline, { key: '2024-01-01' }));
      const [adopted, filled] = await fills(test, 'target', '2024-01-01');
      assert.ok(adopted && filled && filled.fence > adopted.fence);
      const lost = fillRequest(sqlPipeline('SELECT 1/0'), { key: '2024-01-02' });
      await assert.rejects(fill(database, lost));
      const failure = { type: 'DataError', message: 'no', attempt: 1 } as const;
      await recordFailure(database, { pipeline: 'target', key: '2024-01-02', run: lost.owner.run, ...failure });
      const rows = await ledgerRows(test);
      assert.deepEqual(
        rows.map(({ key, outcome, rows }) => [key, outcome, rows]),
        [
          ['2024-01-01', 'filled', 3],
          ['2024-01-02', 'failed', 2],
        ],
      );
    }));

  it('never outlives a fill that ran beside it, whichever commits first', () =>
    asWorker(async (database) => {
      await registerPipeline(database, pipeline);
      const stands = (relation: string, mode: string) => async () => {
        const [row] = await asSuperuser<{ waits: boolean }>(
          test,
          `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = $1::regclass AND mode = $2 AND NOT granted) AS waits`,
          [relation, mode],
        );
        return row?.waits;
      };
      // The fill has written its rows and waits to record them; the adoption counts the old ones meanwhile, and records first.
      await withClient(test.superuserUrl, async (blocker) => {
        await blocker.query('BEGIN; LOCK TABLE repave.backfill IN EXCLUSIVE MODE; LOCK TABLE target IN SHARE MODE');
        const filling = fill(database, fillRequest(pipeline, { key: '2024-01-07' }));
        await until('the fill waits for the table', stands('target', 'RowExclusiveLock'));
        const adopted = await adoptWindows(database, adoption('2024-01-07', '2024-01-07'));
        assert.deepEqual([adopted.keys, adopted.rows], [['2024-01-07'], 7]);
        await blocker.query('COMMIT');
        assert.equal((await filling).rows, 3);
      });
      assert.deepEqual(
        (await ledgerRows(test)).map(({ key, rows, run }) => [key, rows, run === 'adopt/test']),
        [['2024-01-07', 3, false]],
      );
      // The adoption has counted, and waits to record; the fill commits meanwhile.
      await withClient(test.superuserUrl, async (blocker) => {
        await blocker.query(`BEGIN; INSERT INTO repave.claim (pipeline, key, run, scheduled_at, attempt, deadline)
                                    VALUES ('target', '2024-01-08', 'adopt/late', 0, 1, now())`);
        const adopting = adoptWindows(database, adoption('2024-01-08', '2024-01-08', { run: 'adopt/late' }));
        // Not in the blocker's transaction, which would see no session that has begun since it looked first.
        await until('the adoption waits for its claim', async () => {
          const waits = await asSuperuser(
            test,
            `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'`,
          );
          return waits.length > 0;
        });
        await fill(database, fillRequest(pipeline, { key: '2024-01-08' }));
        await blocker.query('ROLLBACK');
        assert.deepEqual(await adopting, { keys: [], rows: 0, empty: 0, known: 1 });
      });
      assert.deepEqual(
        (await ledgerRows(test)).map(({ key, rows, run }) => [key, rows, run.startsWith('adopt/')]),
        [
          ['2024-01-07', 3, false],
          ['2024-01-08', 3, false],
        ],
      );
    }));

  it('does not record windows that a changed calendar has made others', () =>
    asWorker(async (database) => {
      const monthly = { ...pipeline, partition: { ...pipeline.partition, by: 'month' as const } };
      await registerPipeline(database, monthly);
      const failure = await failsAs(adoptWindows(database, adoption('2024-01-01', '2024-01-02')), 'InvalidInput');
      assert.match(failure.message, /Workers have target with another target, partition or scope/);
      await failsAs(adoptWindows(database, adoption('2024-01-01', '2024-01-02', { dryRun: true })), 'InvalidInput');
      assert.deepEqual(await ledgerRows(test), []);
    }));

  it('lets no worker change the calendar meanwhile', () =>
    asWorker(async (database) => {
      await registerPipeline(database, pipeline);
      const waits = (what: string) => async () => {
        const [row] = await asSuperuser<{ waits: boolean }>(
          test,
          `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = $1 AND NOT granted
                             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS waits`,
          [what],
        );
        return row?.waits;
      };
      await withClient(test.superuserUrl, async (blocker) => {
        await blocker.query('BEGIN; LOCK TABLE target IN ACCESS EXCLUSIVE MODE');
        const adopting = adoptWindows(database, adoption('2024-01-01', '2024-01-02'));
        await until('the adoption waits to count', waits('relation'));
        const monthly = { ...pipeline, partition: { ...pipeline.partition, by: 'month' as const } };
        const changing = registerPipeline(database, monthly);
        await until('the change of calendar waits for it', waits('advisory'));
        await blocker.query('COMMIT');
        assert.deepEqual((await adopting).keys, ['2024-01-01', '2024-01-02']);
        await changing;
      });
    }));

  it('counts the rows of the pipeline’s scope alone', () =>
    asWorker(async (database) => {
      await test.sql(`CREATE TABLE scoped (day date, tenant text, n int);
        INSERT INTO scoped VALUES ('2024-01-01', 'acme', 1), ('2024-01-01', 'acme', 2), ('2024-01-01', 'other', 3), ('2023-05-05', 'other', 1)`);
      const acme = sqlPipeline('SELECT 1', { name: 'acme', target: { table: 'scoped' }, scope: { tenant: 'acme' } });
      await registerPipeline(database, acme);
      assert.equal(await oldestInstant(database, acme, signal), '2024-01-01T00:00:00Z');
      const adopted = await adoptWindows(database, adoption('2023-12-31', '2024-01-02', { pipeline: acme }));
      assert.deepEqual([adopted.keys, adopted.rows, adopted.empty], [['2024-01-01'], 2, 2]);
      await test.sql(`INSERT INTO scoped VALUES (NULL, 'acme', 1), (NULL, 'other', 1)`);
      assert.equal(await countOutside(database, acme, undefined, signal), 1);
    }));

  for (const [type, zone] of [
    ['date', 'Pacific/Apia'],
    ['timestamp', 'America/New_York'],
    ['timestamptz', 'America/New_York'],
    ['timestamptz', 'Pacific/Apia'],
  ] as const) {
    it(`counts what a fill of each day would delete: ${type} in ${zone}`, () =>
      asWorker(async (database) => {
        await test.sql(`DROP TABLE IF EXISTS zoned; CREATE TABLE zoned (at ${type}); SET TimeZone = 'UTC';
          INSERT INTO zoned SELECT at FROM generate_series(timestamptz '2011-10-30 00:00Z', '2012-03-20 00:00Z', '30 min') at;
          INSERT INTO zoned VALUES ('infinity'), ('-infinity'), (NULL), ('0044-03-15 BC')`);
        const zoned = sqlPipeline('SELECT 1', {
          name: 'zoned',
          target: { table: 'zoned' },
          partition: { column: 'at', by: 'day', zone },
        });
        const request = adoption('2011-11-01', '2012-03-15', { pipeline: zoned, dryRun: true });
        const { keys, rows } = await adoptWindows(database, request);
        assert.equal(keys.includes('2011-12-30'), zone !== 'Pacific/Apia');
        const limits = request.windows.map((window) => bounds(window, type));
        const [own] = await test.sql<{ days: number; rows: number }>(
          `SELECT count(DISTINCT lower)::int AS days, count(*)::int AS rows
             FROM unnest($1::${type}[], $2::${type}[]) AS w(lower, upper) JOIN zoned ON at >= lower AND at < upper`,
          [limits.map(([lower]) => lower), limits.map(([, upper]) => upper)],
        );
        assert.deepEqual([keys.length, rows], [own?.days, own?.rows]);
        const [all] = await test.sql<{ rows: number }>('SELECT count(*)::int AS rows FROM zoned');
        const [first, last] = [request.windows[0], request.windows.at(-1)];
        assert.ok(first && last);
        assert.equal(await countOutside(database, zoned, [first, last], signal), (all?.rows ?? 0) - rows);
        assert.equal(await countOutside(database, zoned, undefined, signal), 4, 'infinite, before all keys, no date');
        const oldest = await oldestInstant(database, zoned, signal);
        // The infinite and those of no calendar's year are passed over; a local time is told as the instant it is.
        const midnight = {
          date: '2011-10-30T10:00:00Z',
          timestamp: '2011-10-30T04:00:00Z',
          timestamptz: '2011-10-30T00:00:00Z',
        };
        assert.equal(oldest, midnight[type]);
      }));
  }

  it('has no oldest row where there is none', () =>
    asWorker(async (database) => {
      await test.sql('TRUNCATE target');
      assert.equal(await oldestInstant(database, pipeline, signal), undefined);
    }));

  it('ends its query once it is interrupted, and records nothing of the windows it was at', () =>
    asWorker(async (database) => {
      await registerPipeline(database, pipeline);
      const controller = new AbortController();
      await withClient(test.superuserUrl, async (blocker) => {
        await blocker.query('BEGIN; LOCK TABLE target IN ACCESS EXCLUSIVE MODE');
        const request = adoption('2024-01-01', '2024-01-02', { signal: controller.signal });
        const adopting = adoptWindows(database, request);
        await until('the adoption waits for the table', async () => {
          const [row] = await asSuperuser<{ waits: boolean }>(
            test,
            `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'target'::regclass AND NOT granted) AS waits`,
          );
          return row?.waits;
        });
        const reason = new Error('interrupted');
        controller.abort(reason);
        await assert.rejects(adopting, reason);
      });
      assert.deepEqual(await ledgerRows(test), []);
    }));
});
