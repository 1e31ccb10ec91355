import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { MAX_LISTED_FAILURES } from '../../src/contract.js';
import { backfillProgress } from '../../src/warehouse/backfill-progress.js';
import { beginBackfill, failedKeys, noteBackfill } from '../../src/warehouse/backfills.js';
import type { Database } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { partitionHistory } from '../../src/warehouse/partitions.js';
import { recordFailure, recordOwnFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, sqlPipeline, withWorker } from '../support/fill.js';

const pipeline = sqlPipeline('SELECT :date::date AS day FROM generate_series(1, 3)');
const ANA = 'ana@laptop (repave)';

describe('what a backfill has come to, by the ledger', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL)');
  });
  after(() => test.drop());
  beforeEach(() =>
    test.sql('TRUNCATE target, repave.partition, repave.fill, repave.failure, repave.claim, repave.backfill'),
  );

  const asWorker = <T>(use: (database: Database) => Promise<T>): Promise<T> => withWorker(test, use);

  async function begun(database: Database, total: number): Promise<string> {
    const run = randomUUID();
    const input = { pipeline: 'target', from: '2024-02-01' };
    const set = { startedBy: ANA, concurrency: 4 };
    await beginBackfill(database, { run, id: `backfill/target/${run}`, pipeline: 'target', input, total, ...set });
    return run;
  }

  const request = (key: string, backfill?: string) => ({ ...fillRequest(pipeline, { key }), backfill, startedBy: ANA });

  async function fails(database: Database, key: string, backfill: string, message = 'no'): Promise<string> {
    const run = randomUUID();
    const part = { pipeline: 'target', key, run, backfill, startedBy: ANA };
    await recordFailure(database, { ...part, attempt: 2, type: 'DataError', message });
    return run;
  }

  it('of one that the ledger does not know is undefined', () =>
    asWorker(async (database) => {
      assert.equal(await backfillProgress(database, randomUUID()), undefined);
    }));

  it('of one that has just begun is nothing, and not yet a rate', () =>
    asWorker(async (database) => {
      assert.deepEqual(await backfillProgress(database, await begun(database, 3)), {
        filled: 0,
        failed: 0,
        rows: 0,
        failures: [],
        lastFillAt: null,
        recent: { fills: 0, seconds: 0 },
        stopping: false,
        concurrency: 4,
        startedBy: ANA,
      });
    }));

  it('counts its own fills and failures alone, and a partition that was filled since as no failure', () =>
    asWorker(async (database) => {
      const [mine, other] = [await begun(database, 4), await begun(database, 4)];
      await fill(database, request('2024-02-01', mine));
      await fill(database, request('2024-02-02', other));
      await fill(database, request('2024-02-03'));
      await fails(database, '2024-02-04', mine, 'first');
      await fails(database, '2024-02-05', mine, 'second');
      await fails(database, '2024-02-05', mine, 'second again');
      await fails(database, '2024-02-06', other);
      const before = await backfillProgress(database, mine);
      assert.deepEqual([before?.filled, before?.failed, before?.rows], [1, 2, 3]);
      assert.deepEqual(
        before?.failures.map(({ key, type, message }) => [key, type, message]),
        [
          ['2024-02-04', 'DataError', 'first'],
          ['2024-02-05', 'DataError', 'second again'],
        ],
      );
      // Another backfill's fill is none of this one's: its failure stands.
      await fill(database, request('2024-02-04', other));
      assert.equal((await backfillProgress(database, mine))?.failed, 2);
      await fill(database, request('2024-02-04', mine));
      const after = await backfillProgress(database, mine);
      assert.ok(after);
      assert.deepEqual([after.filled, after.failed, after.rows], [2, 1, 6]);
      assert.deepEqual(await failedKeys(database, mine, undefined, 10), ['2024-02-05']);
      const [last] = await test.sql('SELECT max(filled_at) AS at FROM repave.fill WHERE backfill = $1', [mine]);
      assert.deepEqual(after.lastFillAt, last?.at);
      assert.ok(after.failures[0]?.at instanceof Date);
    }));

  it('counts no more partitions as filled than it has', () =>
    asWorker(async (database) => {
      const run = await begun(database, 1);
      await fill(database, request('2024-02-01', run));
      await fill(database, request('2024-02-01', run));
      const progress = await backfillProgress(database, run);
      assert.deepEqual([progress?.filled, progress?.rows], [1, 6]);
    }));

  it('counts every failure and lists the first of them', () =>
    asWorker(async (database) => {
      const run = await begun(database, 20);
      for (let day = 20; day > 20 - MAX_LISTED_FAILURES - 2; day--) await fails(database, `2024-02-${day}`, run);
      const progress = await backfillProgress(database, run);
      assert.equal(progress?.failed, MAX_LISTED_FAILURES + 2);
      assert.equal(progress.failures.length, MAX_LISTED_FAILURES);
      assert.equal(progress.failures[0]?.key, '2024-02-20');
    }));

  it('counts recent fills from the first of the last minutes', () =>
    asWorker(async (database) => {
      const run = await begun(database, 3);
      for (const key of ['2024-02-01', '2024-02-02', '2024-02-03']) await fill(database, request(key, run));
      await test.sql(
        `UPDATE repave.fill SET filled_at = clock_timestamp() - CASE key WHEN '2024-02-01' THEN interval '1 hour' ELSE interval '2 minutes' END`,
      );
      const recent = (await backfillProgress(database, run))?.recent;
      assert.equal(recent?.fills, 2);
      assert.ok(recent.seconds >= 120 && recent.seconds < 300, String(recent.seconds));
    }));

  it('says how it is set: paused, why and since when, stopping, how many at once', () =>
    asWorker(async (database) => {
      const run = await begun(database, 3);
      const since = '2024-03-01T10:00:00.000Z';
      const paused = { by: 'lever', reason: 'the source is being mended', since } as const;
      await noteBackfill(database, { run, concurrency: 8, paused, stopping: true });
      const set = await backfillProgress(database, run);
      assert.deepEqual([set?.concurrency, set?.paused, set?.stopping], [8, paused, true]);
      await noteBackfill(database, { run, concurrency: 2, paused: { by: 'failures', since }, stopping: false });
      assert.deepEqual((await backfillProgress(database, run))?.paused, { by: 'failures', since });
      await noteBackfill(database, { run, concurrency: 2, stopping: false });
      const resumed = await backfillProgress(database, run);
      assert.deepEqual([resumed?.concurrency, resumed?.paused, resumed?.stopping], [2, undefined, false]);
    }));

  it('is in the history of each partition: who, and as part of which backfill', () =>
    asWorker(async (database) => {
      const run = await begun(database, 3);
      await fill(database, request('2024-02-01', run));
      await fails(database, '2024-02-01', run);
      const own = { ...request('2024-02-01', run), pipeline: { ...pipeline, target: { table: 'none' } } };
      const failure = await failsAs(fill(database, own), 'SchemaMismatch');
      assert.equal(await recordOwnFailure(database, own, failure), true);
      await fill(database, fillRequest(pipeline, { key: '2024-02-01' }));
      const said = (await partitionHistory(database, 'target', '2024-02-01')).map(
        ({ kind, startedBy, backfill, backfillId }) => [kind, startedBy, backfill, backfillId],
      );
      const mine = [ANA, run, `backfill/target/${run}`];
      assert.deepEqual(said, [
        ['fill', null, null, null],
        ['failure', ...mine],
        ['failure', ...mine],
        ['fill', ...mine],
      ]);
      await test.sql('DELETE FROM repave.backfill');
      const [, second] = await partitionHistory(database, 'target', '2024-02-01');
      assert.deepEqual([second?.backfill, second?.backfillId], [run, null], 'the ledger has it no more');
    }));
});
