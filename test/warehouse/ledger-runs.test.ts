import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  beginBackfill,
  endBackfill,
  noteBackfill,
  readBackfills,
  runKeys,
  storeRunKeys,
} from '../../src/warehouse/backfills.js';
import type { Database } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { partitionRows } from '../../src/warehouse/partitions.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, ledgerRows, sqlPipeline, withWorker } from '../support/fill.js';

const pipeline = sqlPipeline('SELECT :date::date AS day', { fingerprint: 'v1:first' });

describe('the ledger of runs', () => {
  let test: TestDatabase;
  let database: Database;
  let close: () => void;
  let closed: Promise<void>;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql('CREATE TABLE target (day date NOT NULL)');
    const opened = new Promise<Database>((resolve) => {
      closed = withWorker(test, async (worker) => {
        resolve(worker);
        await new Promise<void>((done) => (close = done));
      });
    });
    database = await opened;
  });
  afterEach(async () => {
    close();
    await closed;
  });

  describe('of failures', () => {
    it('keeps what stands in the partition, and says that its last outcome was a failure', async () => {
      const filled = fillRequest(pipeline);
      await fill(database, filled);
      const run = await failedRun();
      const row = (await partitionRows(database, 'target')).get(KEY);
      assert.deepEqual(
        [row?.outcome, row?.rows, row?.fingerprint, row?.failureType, row?.run],
        ['failed', 1, 'v1:first', 'DataError', run],
      );
      assert.ok(row?.filledAt && row.failedAt && row.failedAt > row.filledAt);
    });

    it('told twice is once', async () => {
      const run = await failedRun();
      await recordFailure(database, {
        pipeline: 'target',
        key: KEY,
        run,
        attempt: 2,
        type: 'TimedOut',
        message: 'again',
      });
      assert.deepEqual(await test.sql('SELECT type, message FROM repave.failure'), [
        { type: 'DataError', message: 'no' },
      ]);
      assert.equal((await ledgerRows(test))[0]?.failureType, 'DataError');
    });

    it('changes no state where another run has filled since under a higher fence', async () => {
      const late = randomUUID();
      // Its claim comes first; what becomes of it is told last.
      await failsAs(
        fill(database, fillRequest({ ...pipeline, target: { table: 'none' } }, { run: late })),
        'SchemaMismatch',
      );
      await fill(database, fillRequest(pipeline));
      await recordFailure(database, {
        pipeline: 'target',
        key: KEY,
        run: late,
        attempt: 1,
        type: 'SchemaMismatch',
        message: 'late',
      });
      assert.equal((await ledgerRows(test))[0]?.outcome, 'filled');
      assert.equal((await test.sql('SELECT FROM repave.failure')).length, 1, 'and it is on record');
    });

    it('of a run whose fill had committed after all: the fill is returned, and nothing is recorded', async () => {
      const request = fillRequest(pipeline);
      await fill(database, request);
      const outcome = await recordFailure(database, {
        pipeline: 'target',
        key: KEY,
        run: request.owner.run,
        attempt: 1,
        type: 'DatabaseUnavailable',
        message: 'lost',
      });
      assert.deepEqual([outcome?.rows, outcome?.found], [1, true]);
      assert.deepEqual(await test.sql('SELECT FROM repave.failure'), []);
      assert.equal((await ledgerRows(test))[0]?.outcome, 'filled');
    });

    it('of a run that never reached its claim is recorded all the same, and the run may not claim any more', async () => {
      const run = randomUUID();
      await recordFailure(database, {
        pipeline: 'target',
        key: KEY,
        run,
        attempt: 0,
        type: 'DatabaseUnavailable',
        message: 'down',
      });
      assert.equal((await ledgerRows(test))[0]?.outcome, 'failed');
      await failsAs(fill(database, fillRequest(pipeline, { run })), 'StaleAttempt');
      assert.deepEqual(await fills(test), []);
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 1, 'another run may');
      assert.equal((await ledgerRows(test))[0]?.outcome, 'filled');
    });
  });

  describe('of backfills', () => {
    const begun = {
      id: 'backfill/target/a..b',
      pipeline: 'target',
      input: { pipeline: 'target', from: 'a' },
      total: 3,
      startedBy: 'ana@laptop',
    };
    const ended = { filled: 2, failed: 1, skipped: 0, rows: 10 };

    it('has each run once, the newest first, by id or pipeline', async () => {
      const [first, second] = [randomUUID(), randomUUID()];
      await beginBackfill(database, { run: first, ...begun });
      await beginBackfill(database, { run: first, ...begun, total: 99 });
      await endBackfill(database, { run: first, outcome: 'incomplete', ...ended });
      await endBackfill(database, { run: first, outcome: 'incomplete', ...ended });
      await beginBackfill(database, { run: second, ...begun });
      await beginBackfill(database, { run: randomUUID(), ...begun, id: 'x', pipeline: 'other' });

      const runs = await readBackfills(database, { id: begun.id, limit: 10 });
      assert.deepEqual(
        runs.map(({ startedAt, endedAt, ...run }) => ({
          ...run,
          began: startedAt instanceof Date,
          ended: endedAt instanceof Date,
        })),
        [
          {
            run: second,
            ...begun,
            filled: 0,
            failed: 0,
            skipped: 0,
            rows: 0,
            outcome: null,
            began: true,
            ended: false,
          },
          { run: first, ...begun, ...ended, outcome: 'incomplete', began: true, ended: true },
        ],
      );
      assert.equal((await readBackfills(database, { limit: 2 })).length, 2);
      assert.deepEqual(
        (await readBackfills(database, { pipeline: 'other', limit: 9 })).map(({ id }) => id),
        ['x'],
      );
    });

    it('takes an end back where the backfill has gone on after just that one', async () => {
      const run = randomUUID();
      const set = { run, concurrency: 4, stopping: false };
      const state = async () => (await readBackfills(database, { limit: 1 }))[0];
      await beginBackfill(database, { run, ...begun });
      const first = await endBackfill(database, { run, outcome: 'incomplete', ...ended });
      assert.deepEqual((await state())?.endedAt, first);
      await noteBackfill(database, set);
      assert.equal((await state())?.outcome, 'incomplete', 'a word on how it is set says nothing of its end');
      const note = { ...set, wentOnAfter: first?.toISOString() };
      await noteBackfill(database, note);
      await noteBackfill(database, note);
      assert.deepEqual([(await state())?.outcome, (await state())?.endedAt], [null, null]);
      assert.equal((await readBackfills(database, { open: true, limit: 9 })).length, 1);

      // A clock that stands still would make one end of two.
      let second = first;
      while (second?.getTime() === first?.getTime()) {
        second = await endBackfill(database, { run, outcome: 'done', ...ended });
      }
      await noteBackfill(database, note);
      assert.deepEqual([(await state())?.outcome, (await state())?.endedAt], ['done', second], 'told late');
    });

    it('knows no end of a backfill that it does not know', async () => {
      assert.equal(await endBackfill(database, { run: randomUUID(), outcome: 'done', ...ended }), undefined);
    });

    it('keeps the list of a run in its order, page by page', async () => {
      const run = randomUUID();
      const keys = Array.from({ length: 2_500 }, (_, i) => `key-${(i * 7_919) % 2_500}`);
      await storeRunKeys(database, run, keys);
      await storeRunKeys(database, run, keys);
      const read: string[] = [];
      for (;;) {
        const page = await runKeys(database, run, read.length, 1_000);
        if (page.length === 0) break;
        read.push(...page);
      }
      assert.deepEqual(read, keys);
    });

    it('says of a list that was pruned, or half of it, that it is there no more: never that it is through', async () => {
      const run = randomUUID();
      await storeRunKeys(database, run, ['a', 'b', 'c', 'd']);
      await test.sql('DELETE FROM repave.run_key WHERE seq <= 2');
      assert.match((await failsAs(runKeys(database, run, 0, 10), 'InvalidInput')).message, /anew/);
      await failsAs(runKeys(database, run, 1, 10), 'InvalidInput');
      assert.deepEqual(await runKeys(database, run, 2, 10), ['c', 'd']);
      assert.deepEqual(await runKeys(database, run, 4, 10), []);
      await test.sql('DELETE FROM repave.run_key');
      await failsAs(runKeys(database, run, 4, 10), 'InvalidInput');
    });

    it('takes an earlier run of an id that never said how it ended for terminated, once the id runs again', async () => {
      const [lost, other, done, again] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
      await beginBackfill(database, { run: done, ...begun });
      await endBackfill(database, { run: done, outcome: 'done', ...ended });
      await beginBackfill(database, { run: lost, ...begun });
      await beginBackfill(database, { run: other, ...begun, id: 'backfill/target/c..d' });
      await beginBackfill(database, { run: again, ...begun });
      await beginBackfill(database, { run: again, ...begun });
      const outcomes = new Map(
        (await readBackfills(database, { limit: 10 })).map(({ run, outcome }) => [run, outcome]),
      );
      assert.deepEqual(
        [lost, other, done, again].map((run) => outcomes.get(run)),
        ['terminated', null, 'done', null],
      );
    });
  });

  /** A run that claimed, failed and was recorded so. */
  async function failedRun(key = KEY): Promise<string> {
    const run = randomUUID();
    await failsAs(
      fill(database, fillRequest({ ...pipeline, target: { table: 'none' } }, { run, key })),
      'SchemaMismatch',
    );
    await recordFailure(database, { pipeline: 'target', key, run, attempt: 1, type: 'DataError', message: 'no' });
    return run;
  }
});
