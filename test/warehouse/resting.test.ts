import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FailureType } from '../../src/contract.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { givenUpBy, restingPartitions } from '../../src/warehouse/resting.js';
import { verifyWindows } from '../../src/warehouse/verify.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, KEY, sqlPipeline } from '../support/fill.js';
import { withClient } from '../support/template.js';

const OTHER = '2024-03-01';
const pipeline = sqlPipeline('SELECT :date::date AS day');

describe('partitions that rest', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL)');
    database = await openDatabase(test.url, { fills: 2 });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE target, repave.pipeline, repave.partition, repave.fill, repave.failure, repave.claim');
    await registerPipeline(database, pipeline);
  });

  /** Records final failures, one a run. */
  async function fails(times: number, type: FailureType = 'CheckFailed', key = KEY, backfill?: string): Promise<void> {
    for (let n = 0; n < times; n += 1) {
      const failure = { attempt: 1, type, message: `no ${n}`, backfill };
      await recordFailure(database, { pipeline: 'target', key, run: randomUUID(), ...failure });
    }
  }

  const resting = (tries: number) => restingPartitions(database, 'target', [OTHER, KEY], tries);
  const CHECKS = { key: KEY, type: 'CheckFailed' } as const;

  it('are those that have failed as often as that, and no others', async () => {
    await fails(2);
    await fails(3, 'DataError', OTHER);
    assert.deepEqual(await resting(4), []);
    assert.deepEqual(await resting(3), [{ key: OTHER, type: 'DataError', tries: 3 }]);
    assert.deepEqual(
      (await resting(2)).map(({ key }) => key),
      [KEY, OTHER],
      'in the order of time',
    );
    assert.deepEqual(await restingPartitions(database, 'target', [KEY], 2), [{ ...CHECKS, tries: 2 }]);
    assert.deepEqual(await restingPartitions(database, 'another', [KEY, OTHER], 1), []);
  });

  it('count the kind of their last failure: another begins anew, and one that was there before goes on', async () => {
    await fails(3);
    await fails(1, 'DataError');
    assert.deepEqual(await resting(3), []);
    await fails(1);
    assert.deepEqual(await resting(3), [{ ...CHECKS, tries: 4 }]);
  });

  it('are none that failed by what passes: the world, or another run', async () => {
    const backfill = randomUUID();
    for (const type of [
      'SourceNotReady',
      'DatabaseUnavailable',
      'Conflict',
      'WrongLedger',
      'WorkerOutdated',
    ] as const) {
      await fails(3, type, KEY, backfill);
      assert.deepEqual([type, await resting(1)], [type, []]);
    }
    for (const type of ['Busy', 'StaleAttempt'] as const) {
      await fails(3, type, OTHER, backfill);
      assert.deepEqual([type, await resting(1)], [type, []]);
    }
    assert.deepEqual(await givenUpBy(database, backfill, 1), []);
    await fails(1, 'TimedOut', KEY, backfill);
    assert.deepEqual(await resting(1), [{ key: KEY, type: 'TimedOut', tries: 1 }]);
    assert.equal((await givenUpBy(database, backfill, 1)).length, 1);
  });

  it('count from their last fill, which ends the rest', async () => {
    await fails(3);
    await fill(database, fillRequest(pipeline));
    assert.deepEqual(await resting(1), []);
    await fails(2);
    assert.deepEqual(await resting(3), []);
    assert.deepEqual(await resting(2), [{ ...CHECKS, tries: 2 }]);
  });

  it('count from their last fill too where its rows were found deleted since', async () => {
    await fails(2);
    const request = fillRequest(pipeline);
    await fill(database, request);
    await test.sql('DELETE FROM target');
    const { findings } = await verifyWindows(database, { ...request, windows: [request.window], dryRun: false });
    assert.equal(findings.length, 1);
    await fails(1);
    assert.deepEqual(await resting(2), []);
    assert.deepEqual(await resting(1), [{ ...CHECKS, tries: 1 }]);
  });

  it('count from when the pipeline’s fingerprint was registered first', async () => {
    await fails(3);
    await registerPipeline(database, pipeline);
    assert.equal((await resting(3)).length, 1, 'registered again it is no other');
    await registerPipeline(database, { ...pipeline, fingerprint: 'v1:mended' });
    assert.deepEqual(await resting(1), []);
    await fails(1);
    assert.deepEqual(await resting(1), [{ ...CHECKS, tries: 1 }]);
  });

  it('are told by the backfill that has tried them last, and by none that left tries', async () => {
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    await fails(1, 'CheckFailed', KEY, first);
    await fails(1, 'CheckFailed', KEY, second);
    await fails(1, 'DataError', OTHER, second);
    const givenUp = [{ ...CHECKS, tries: 2, message: 'no 0' }];
    assert.deepEqual(await givenUpBy(database, first, 2), []);
    assert.deepEqual(await givenUpBy(database, second, 2), givenUp);
    // Whatever has come of it since.
    await fails(1, 'DataError', KEY, third);
    assert.deepEqual(await givenUpBy(database, second, 2), givenUp);
    assert.deepEqual(await givenUpBy(database, third, 2), []);
    await fill(database, fillRequest(pipeline));
    assert.deepEqual(await givenUpBy(database, second, 2), [], 'it is filled now');
  });

  it('are found by an index, however many failures the ledger has', async () => {
    await test.sql(
      `INSERT INTO repave.failure (pipeline, key, run, attempt, fence, type, message)
       SELECT p, (date '2000-01-01' + d)::text, r::text, 1, 1, 'DataError', 'no'
         FROM unnest(ARRAY['target', 'another']) p, generate_series(0, 2999) d, generate_series(1, 5) r`,
    );
    await test.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, failure_type, run, attempt, fence)
       SELECT p, (date '2000-01-01' + d)::text, 'failed', 'DataError', '5', 1, 1
         FROM unnest(ARRAY['target', 'another']) p, generate_series(0, 2999) d`,
    );
    await withClient(test.ownerUrl, (client) => client.query('ANALYZE repave.failure, repave.partition'));
    const before = await rowsRead();
    const keys = Array.from({ length: 100 }, (_, n) => new Date(Date.UTC(2003, 0, n)).toISOString().slice(0, 10));
    assert.equal((await restingPartitions(database, 'target', keys, 5)).length, 100);
    const read = (await rowsRead()) - before;
    assert.ok(read >= 500 && read < 2_000, `${read} rows of repave.failure were read for 100 partitions with 5 each`);
  });

  /** Rows of repave.failure that were read so far, as the server counts. */
  async function rowsRead(): Promise<number> {
    await database.query('SELECT pg_catalog.pg_stat_force_next_flush()');
    const [row] = await test.sql<{ n: number }>(
      `SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 AS n FROM pg_stat_all_tables WHERE relid = 'repave.failure'::regclass`,
    );
    return row?.n ?? 0;
  }
});
