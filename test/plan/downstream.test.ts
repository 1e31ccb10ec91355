import assert from 'node:assert/strict';
import { MAX_RANGES, planDownstream } from '../../src/plan/downstream.js';
import type { Span } from '../../src/plan/selection.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import type { RegisteredPipeline } from '../../src/warehouse/ledger.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { registered as pipeline } from '../support/registered.js';

const NOW = new Date('2024-03-20T12:00:00Z');

describe('what depends on some partitions', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 1 });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE repave.partition');
  });

  const planned = async (registered: readonly RegisteredPipeline[], covered: Span, assumed = true) => {
    const plans = await planDownstream(database, registered, 'root', covered, { now: NOW, assumed });
    return plans.map(({ pipeline: name, total, ranges, notes }) => {
      return [name, total, ranges.map(({ from, to }) => (from === to ? from : `${from}..${to}`)).join(), ...notes];
    });
  };
  /** Fills of partitions that come after nothing. */
  const fill = (name: string, from: string, to: string) =>
    test.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence, fill)
       SELECT $1, d::date::text, 'filled', 1, 'v1:now', now(), 'r', 1, 1, 1 FROM generate_series($2::date, $3::date, '1 day') d`,
      [name, from, to],
    );

  it('is each finished partition that overlaps, through any units and zones, in order', async () => {
    const registered = [
      pipeline('root', 'day', [], { start: '2024-01-30' }),
      pipeline('a_year', 'year', ['month']),
      pipeline('month', 'month', ['week']),
      pipeline('week', 'week', ['root']),
      pipeline('hour', 'hour', ['root'], { zone: 'America/New_York' }),
      pipeline('ny', 'day', ['root'], { zone: 'America/New_York', start: '2024-01-30' }),
      pipeline('nobody', 'day', ['elsewhere']),
    ];
    // The first week begins in January, which is complete by it alone; the last day's week is not over.
    assert.deepEqual(await planned(registered, { from: '2024-01-30', to: '2024-02-01' }), [
      ['week', 0, '', 'week 2024-W05 is left out: it comes after root 2024-02-02 (missing).'],
      [
        'month',
        0,
        '',
        '2 partitions of month are left out, from 2024-01 to 2024-02: they come after week 2024-W01 (missing), root 2024-02-02 (missing).',
      ],
      ['a_year', 0, '', 'a_year is left out from 2024 on, which is unfinished until 2025-01-01T00:00:00Z.'],
      ['hour', 72, '2024-01-30T00Z..2024-02-01T23Z'],
      // Its last day also overlaps one of UTC that is not filled.
      ['ny', 2, '2024-01-30..2024-01-31', 'ny 2024-02-01 is left out: it comes after root 2024-02-02 (missing).'],
    ]);
  });

  it('leaves out what is not over, and what comes after that', async () => {
    const registered = [
      pipeline('root', 'day', [], { start: '2024-02-01' }),
      pipeline('month', 'month', ['root'], { start: '2024-02' }),
      pipeline('by_day', 'day', ['month', 'root'], { start: '2024-02-01' }),
    ];
    assert.deepEqual(await planned(registered, { from: '2024-02-01', to: '2024-03-19' }), [
      ['month', 1, '2024-02', 'month is left out from 2024-03 on, which is unfinished until 2024-04-01T00:00:00Z.'],
      [
        'by_day',
        29,
        '2024-02-01..2024-02-29',
        '19 partitions of by_day are left out, from 2024-03-01 to 2024-03-19: they come after month 2024-03 (missing).',
      ],
    ]);
  });

  it('goes around holes, by the ledger once it is filled', async () => {
    const registered = [
      pipeline('root', 'day', []),
      pipeline('beside', 'day', []),
      pipeline('both', 'day', ['root', 'beside']),
    ];
    await fill('beside', '2024-02-01', '2024-02-09');
    await test.sql(`UPDATE repave.partition SET outcome = 'failed' WHERE key = '2024-02-03'`);
    await test.sql(`UPDATE repave.partition SET fingerprint = 'v1:older' WHERE key = '2024-02-06'`);
    const covered = { from: '2024-02-02', to: '2024-02-08' };
    assert.deepEqual(await planned(registered, covered), [
      [
        'both',
        5,
        '2024-02-02,2024-02-04..2024-02-05,2024-02-07..2024-02-08',
        '2 partitions of both are left out, from 2024-02-03 to 2024-02-06: they come after beside 2024-02-03 (failed), beside 2024-02-06 (outdated).',
      ],
    ]);
    await fill('root', '2024-02-02', '2024-02-07');
    assert.deepEqual(
      (await planned(registered, covered, false)).map(([, total, ranges]) => [total, ranges]),
      [[4, '2024-02-02,2024-02-04..2024-02-05,2024-02-07']],
    );
  });

  it('asks never for what is not ready, however many holes there are, and says where it ends', async () => {
    const registered = [
      pipeline('root', 'day', []),
      pipeline('other', 'day', []),
      pipeline('copy', 'day', ['root', 'other']),
      pipeline('behind', 'day', ['copy']),
    ];
    await test.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence, fill)
       SELECT 'other', (date '1990-01-01' + 2 * i)::text, 'filled', 1, 'v1:now', now(), 'r', 1, 1, 1 FROM generate_series(0, $1) i`,
      [MAX_RANGES],
    );
    const last = await test.sql<{ to: string }>(`SELECT (date '1990-01-01' + 2 * $1::int)::text AS to`, [MAX_RANGES]);
    const to = last[0]?.to ?? '';
    const plans = await planDownstream(
      database,
      registered,
      'root',
      { from: '1990-01-01', to },
      { now: NOW, assumed: true },
    );
    for (const { total, ranges } of plans) assert.deepEqual([total, ranges.length], [MAX_RANGES, MAX_RANGES]);
    assert.ok(plans[0]?.ranges.every((range) => range.from === range.to));
    assert.ok(plans[0]?.notes.at(-1)?.includes(`copy is left out from ${to} on`), plans[0]?.notes.join());
  });
});
