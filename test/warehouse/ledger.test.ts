import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Database } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { partitionHistory, partitionRows, pipelineCounts } from '../../src/warehouse/partitions.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, until, withWorker, within } from '../support/fill.js';
import { unhooked, withStatements } from '../support/statements.js';

const pipeline = sqlPipeline('SELECT :date::date AS day', { fingerprint: 'v1:first' });
/** Workers that start at once. */
const AT_ONCE = 12;

describe('the ledger', () => {
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
    await test.sql('CREATE TABLE target (day date NOT NULL); CREATE TABLE other (day date NOT NULL)');
    const opened = new Promise<Database>((resolve) => {
      const live = async (worker: Database): Promise<void> => {
        resolve(worker);
        await new Promise<void>((done) => (close = done));
      };
      // As many as register at once: none waits for a connection of another's.
      closed = withWorker(test, live, { fills: AT_ONCE });
    });
    database = await opened;
  });
  afterEach(async () => {
    close();
    await closed;
  });

  describe('of pipelines', () => {
    it('says what was registered, and since when', async () => {
      await registerPipeline(database, { ...pipeline, start: '2024-01-01' });
      const [first] = await registeredPipelines(database);
      assert.ok(first);
      const { registeredAt, since, ...rest } = first;
      assert.deepEqual(rest, {
        name: 'target',
        target: 'public.target',
        column: 'day',
        by: 'day',
        zone: 'UTC',
        scope: {},
        fingerprint: 'v1:first',
        start: '2024-01-01',
        after: [],
      });
      assert.deepEqual(since, registeredAt);

      await registerPipeline(database, pipeline);
      const [again] = await registeredPipelines(database);
      assert.deepEqual(again?.since, since, 'the same query');
      assert.ok(again.registeredAt > registeredAt);
      assert.equal(again.start, null);

      await registerPipeline(database, { ...pipeline, fingerprint: 'v1:second' });
      const [changed] = await registeredPipelines(database);
      assert.equal(changed?.fingerprint, 'v1:second');
      assert.ok(changed.since > since);
    });

    it('refuses a second one on a target, naming the first and what to do', async () => {
      await registerPipeline(database, pipeline);
      const second = { ...pipeline, name: 'second' };
      const failure = await failsAs(registerPipeline(database, second), 'InvalidPipeline');
      assert.match(
        failure.message,
        /public\.target is already the target of target.*DELETE FROM repave\.pipeline WHERE name = 'target'/,
      );
      const filled = await failsAs(fill(database, fillRequest(second)), 'InvalidPipeline');
      assert.match(filled.message, /public\.target is also the target of target \(by day, UTC, column day\)/);
      assert.equal((await registeredPipelines(database)).length, 1);

      await test.sql(`DELETE FROM repave.pipeline WHERE name = 'target'`);
      await registerPipeline(database, second);
    });

    it('knows a target however it is written', async () => {
      await registerPipeline(database, pipeline);
      const written = { ...pipeline, name: 'second', target: { schema: 'public', table: 'target' } };
      await failsAs(registerPipeline(database, written), 'InvalidPipeline');
    });

    it('lets one pipeline move to another target', async () => {
      await registerPipeline(database, pipeline);
      await registerPipeline(database, { ...pipeline, target: { table: 'other' } });
      assert.deepEqual(
        (await registeredPipelines(database)).map(({ target }) => target),
        ['public.other'],
      );
      await registerPipeline(database, { ...pipeline, name: 'second' });
    });

    it('lets a changed grid wait until no fill of the target runs, and refuses fills by the old one', async () => {
      await registerPipeline(database, pipeline);
      const monthly = { ...pipeline, partition: { ...pipeline.partition, by: 'month' as const } };
      let registering: Promise<void> | undefined;
      let registered = false;
      await withStatements(
        {
          before: async ({ kind }) => {
            if (kind !== 'guard') return;
            registering = unhooked(() => registerPipeline(database, monthly)).then(() => void (registered = true));
            await until('the registration waits for the grid', () => unhooked(() => waiting()));
            assert.equal(registered, false);
          },
        },
        () => fill(database, fillRequest(pipeline)),
      );
      await within('the registration', registering ?? Promise.reject(new Error('it was not begun')));
      assert.equal((await registeredPipelines(database))[0]?.by, 'month');
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'InvalidPipeline');
      assert.match(
        failure.message,
        /target \(by month, UTC, column day\), as another worker has registered it since, .* by day, UTC, column day/,
      );
      assert.equal((await fill(database, fillRequest(monthly, { key: '2024-02' }))).deleted, 1);
    });

    it('is written once by many workers that start at once', async () => {
      await Promise.all(Array.from({ length: AT_ONCE }, () => registerPipeline(database, pipeline)));
      assert.equal((await registeredPipelines(database)).length, 1);
      const contenders = await Promise.allSettled(
        ['a', 'b', 'c', 'd'].map((name) =>
          registerPipeline(database, { ...pipeline, name, target: { table: 'other' } }),
        ),
      );
      assert.equal(contenders.filter(({ status }) => status === 'fulfilled').length, 1);
    });

    const waiting = async (): Promise<boolean> =>
      (
        await test.sql(`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
      ).length > 0;
  });

  describe('of partitions', () => {
    it('has the keys between two, both included, byte by byte', async () => {
      const keys = ['2023-12-31', '2024-01-01', '2024-02-29', '2024-10-01'];
      for (const key of keys) await fill(database, fillRequest(pipeline, { key }));
      assert.deepEqual([...(await partitionRows(database, 'target')).keys()], keys);
      assert.deepEqual(
        [...(await partitionRows(database, 'target', '2024-01-01', '2024-02-29')).keys()],
        keys.slice(1, 3),
      );
      assert.deepEqual(
        [...(await partitionRows(database, 'target', undefined, '2024-01-01')).keys()],
        keys.slice(0, 2),
      );
      assert.deepEqual([...(await partitionRows(database, 'target', '2024-01-02')).keys()], keys.slice(2));
      assert.deepEqual([...(await partitionRows(database, 'nobody')).keys()], []);
    });

    it('says what a partition holds, and every fill and failure of it, the newest first', async () => {
      const first = fillRequest(pipeline);
      await fill(database, first);
      const failed = await failedRun();
      const second = fillRequest({ ...pipeline, fingerprint: 'v1:second' }, { attempt: 2 });
      await fill(database, second);

      const row = (await partitionRows(database, 'target')).get(KEY);
      assert.ok(row?.filledAt);
      assert.deepEqual(
        { ...row, filledAt: undefined },
        {
          key: KEY,
          outcome: 'filled',
          rows: 1,
          fingerprint: 'v1:second',
          filledAt: undefined,
          failedAt: null,
          failureType: null,
          failureMessage: null,
          run: second.owner.run,
          attempt: 2,
        },
      );
      const history = await partitionHistory(database, 'target', KEY);
      assert.deepEqual(
        history.map(({ kind, run }) => [kind, run]),
        [
          ['fill', second.owner.run],
          ['failure', failed],
          ['fill', first.owner.run],
        ],
      );
    });

    it('counts by state, and the newest that was ever filled', async () => {
      await fill(database, fillRequest(pipeline, { key: '2024-03-01' }));
      await fill(database, fillRequest({ ...pipeline, fingerprint: 'v1:old' }, { key: '2024-03-02' }));
      await failedRun(KEY);
      await failedRun('2024-03-03');
      assert.deepEqual(await pipelineCounts(database, 'target', 'v1:first'), {
        filled: 1,
        failed: 2,
        outdated: 1,
        newest: '2024-03-02',
      });
      assert.deepEqual(await pipelineCounts(database, 'nobody', ''), {
        filled: 0,
        failed: 0,
        outdated: 0,
        newest: null,
      });
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
