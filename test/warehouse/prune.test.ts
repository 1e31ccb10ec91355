import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FailureType } from '../../src/contract.js';
import { beginBackfill, endBackfill, noteBackfill, storeRunKeys } from '../../src/warehouse/backfills.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { PRUNABLE } from '../../src/warehouse/prunable.js';
import { prune, type PrunedPage } from '../../src/warehouse/prune.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, fills, ledgerRows, sqlPipeline, within, withWorker } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const DAY_MS = 86_400_000;
const KEEP = { keepMs: 90 * DAY_MS, dryRun: false };
const pipeline = sqlPipeline('SELECT :date::date AS day');
const never = new AbortController().signal;

describe('pruning the ledger', () => {
  let test: TestDatabase;
  let owner: Database;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL)');
    owner = await openDatabase(test.ownerUrl, { fills: 1 });
  });
  after(async () => {
    await owner.close();
    await test.drop();
  });
  beforeEach(() =>
    test.sql(
      'TRUNCATE target, repave.partition, repave.fill, repave.failure, repave.claim, repave.backfill, repave.run_key, repave.notice',
    ),
  );

  const asWorker = <T>(use: (database: Database) => Promise<T>): Promise<T> => withWorker(test, use);

  /** Rows removed, by table; those that lost none are left out. */
  async function pruned(options: Partial<typeof KEEP> = {}): Promise<Readonly<Record<string, number>>> {
    const pages: PrunedPage[] = [];
    for await (const page of prune(owner, { ...KEEP, ...options, signal: never })) pages.push(page);
    const rows = (of: string): number =>
      pages.filter(({ table }) => table === of).reduce((sum, page) => sum + page.rows, 0);
    const removed = PRUNABLE.map(({ table }) => [table, rows(table)] as const).filter(([, count]) => count !== 0);
    return Object.fromEntries<number>(removed);
  }

  /** Makes all that the ledger has so many days older. */
  const age = (days: number): Promise<unknown> =>
    test.sql(
      `WITH fills AS (UPDATE repave.fill SET filled_at = filled_at - $1 * interval '1 day'),
            failures AS (UPDATE repave.failure SET failed_at = failed_at - $1 * interval '1 day'),
            claims AS (UPDATE repave.claim SET deadline = deadline - $1 * interval '1 day'),
            lists AS (UPDATE repave.run_key SET kept_at = kept_at - $1 * interval '1 day')
       UPDATE repave.backfill SET started_at = started_at - $1 * interval '1 day', ended_at = ended_at - $1 * interval '1 day'`,
      [days],
    );

  async function filled(key: string, backfill?: string): Promise<string> {
    const request = { ...fillRequest(pipeline, { key }), backfill };
    await asWorker((database) => fill(database, request));
    return request.owner.run;
  }

  async function failed(key: string, backfill?: string, type: FailureType = 'DataError'): Promise<string> {
    const run = randomUUID();
    const failure = { pipeline: 'target', key, run, attempt: 1, type, message: 'no' } as const;
    await asWorker((database) => recordFailure(database, { ...failure, backfill }));
    return run;
  }

  async function begun(run = randomUUID()): Promise<string> {
    const backfill = { run, id: `backfill/target/${run}`, pipeline: 'target', input: {}, total: 3 };
    await asWorker((database) => beginBackfill(database, backfill));
    return run;
  }

  const ended = (run: string): Promise<Date | undefined> =>
    asWorker((database) => endBackfill(database, { run, outcome: 'done', filled: 1, failed: 0, skipped: 0, rows: 1 }));

  it('removes replaced fills that are old, and never the newest of a partition, however old', async () => {
    const runs = [await filled('2024-02-01'), await filled('2024-02-01'), await filled('2024-02-02')];
    await age(60);
    runs.push(await filled('2024-02-02'));
    assert.deepEqual(await pruned(), {}, 'all is younger than 90 days');
    await age(60);
    assert.deepEqual(await pruned({ dryRun: true }), { fill: 2 });
    assert.equal((await fills(test)).length, 4);
    assert.deepEqual(await pruned(), { fill: 2 });
    assert.deepEqual(
      (await fills(test)).map(({ run }) => run),
      [runs[1], runs[3]],
    );
    await age(10_000);
    assert.deepEqual(await pruned(), {});
    assert.equal((await ledgerRows(test)).length, 2, 'and what partitions hold is as it was');
  });

  it('removes old failures that their partition has left behind, and keeps those that its state is about', async () => {
    await failed('2024-02-01');
    await filled('2024-02-01');
    await failed('2024-02-02', undefined, 'SourceFailed');
    // It rests, or does not, by how often it has failed in this way.
    const counts = await failed('2024-02-02');
    const stands = await failed('2024-02-02');
    await age(91);
    // Their claims are closed, and as old.
    assert.deepEqual(await pruned(), { claim: 4, failure: 2 });
    assert.deepEqual(await test.sql('SELECT run FROM repave.failure ORDER BY id'), [{ run: counts }, { run: stands }]);
    assert.deepEqual(
      (await ledgerRows(test)).map(({ outcome, run }) => [outcome, run === stands]),
      [
        ['filled', false],
        ['failed', true],
      ],
    );
  });

  it('removes what says that somebody was told, once that is as old', async () => {
    await test.sql(
      `INSERT INTO repave.notice (id, told_at) VALUES ('old', now() - interval '91 days'), ('young', now())`,
    );
    assert.deepEqual(await pruned(), { notice: 1 });
    assert.deepEqual(await test.sql('SELECT id FROM repave.notice'), [{ id: 'young' }]);
  });

  it('keeps all of a backfill that is open: its progress and retryFailed go by it', async () => {
    const run = await begun();
    await failed('2024-02-01', run);
    await filled('2024-02-01', run);
    await age(91);
    await filled('2024-02-01', run);
    assert.deepEqual(await pruned(), { claim: 1 });
    await ended(run);
    assert.deepEqual(await pruned(), { fill: 1, failure: 1 });
    await age(91);
    assert.deepEqual(await pruned(), { backfill: 1 });
  });

  it('takes an open backfill that did nothing for so long for terminated, unless it is paused', async () => {
    const [lost, paused, alive, young] = [await begun(), await begun(), await begun(), await begun()];
    await filled('2024-02-01', lost);
    const since = '2020-01-01T00:00:00Z';
    await asWorker((database) =>
      noteBackfill(database, { run: paused, concurrency: 4, paused: { by: 'lever', since }, stopping: false }),
    );
    await age(91);
    await filled('2024-02-01', alive);
    await test.sql('UPDATE repave.backfill SET started_at = now() WHERE run = $1', [young]);
    assert.deepEqual(await pruned(), { backfill: 1 });
    assert.deepEqual(await pruned(), { fill: 1 }, 'and what was its own, the next time');
    const left = (await test.sql<{ run: string }>('SELECT run FROM repave.backfill')).map(({ run }) => run);
    assert.deepEqual(new Set(left), new Set([paused, alive, young]));
  });

  it('removes the lists of ended backfills at once, those of their later attempts too, and no others', async () => {
    const [over, open, terminated, unknown] = [await begun(), await begun(), await begun(), randomUUID()];
    for (const list of [over, `${over}#2`, open, `${open}#2`, terminated, unknown])
      await asWorker((database) => storeRunKeys(database, list, ['a', 'b']));
    await ended(over);
    await test.sql(`UPDATE repave.backfill SET outcome = 'terminated', ended_at = now() WHERE run = $1`, [terminated]);
    assert.deepEqual(await pruned(), { run_key: 4 });
    const lists = await test.sql<{ run: string }>('SELECT DISTINCT run FROM repave.run_key');
    assert.deepEqual(new Set(lists.map(({ run }) => run)), new Set([open, `${open}#2`, terminated, unknown]));
    // One that was stored, and whose backfill never began.
    await test.sql(`UPDATE repave.run_key SET kept_at = now() - interval '91 days' WHERE run = ANY ($1)`, [
      [open, unknown],
    ]);
    assert.deepEqual(await pruned(), { run_key: 2 });
  });

  it('removes the claims of runs that are over for long, however they ended', async () => {
    await failed('2024-02-01');
    await test.sql(
      `INSERT INTO repave.claim (pipeline, key, run, scheduled_at, attempt, deadline)
       SELECT 'target', '2024-02-02', run, 0, 1, now() - days * interval '1 day' FROM (VALUES ('lost', 91), ('late', 89)) v(run, days)`,
    );
    assert.deepEqual(await pruned(), { claim: 1 });
    await age(2);
    assert.deepEqual(await pruned(), { claim: 1 });
    assert.equal((await test.sql('SELECT FROM repave.claim')).length, 1, 'the failure of two days ago');
  });

  it('leaves to a run that still tries its own fill, though another has replaced it', async () => {
    const mine = fillRequest(pipeline, { key: '2024-02-01' });
    await asWorker((database) => fill(database, mine));
    await filled('2024-02-01');
    await age(1.9);
    assert.deepEqual(await pruned({ keepMs: 2 * DAY_MS }), {});
    const again = await asWorker((database) => fill(database, { ...mine, attempt: { ...mine.attempt, number: 2 } }));
    assert.equal(again.found, true);
  });

  describe('of many rows', () => {
    const PARTITIONS = 2_500;
    beforeEach(() =>
      test.sql(
        `WITH fills AS (
           INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint,
                                    rows_deleted, rows_inserted, seconds, checks, warnings, filled_at)
           SELECT 'target', 'k' || k, now(), now(), 'run' || r, '1', 1, r, 'v1:x', 0, 1, 0.1, '[]', '{}', now() - (100 - r) * interval '1 day'
             FROM generate_series(1, 3) r, generate_series(1, $1::int) k)
         INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
         SELECT 'target', 'k' || k, 'filled', 1, 'v1:x', now(), 'run3', 1, 3 FROM generate_series(1, $1) k`,
        [PARTITIONS],
      ),
    );

    it('works in pages, each on its own: one that is ended has done less, and the next goes on', async () => {
      const stop = new AbortController();
      const pages: PrunedPage[] = [];
      await assert.rejects(async () => {
        for await (const page of prune(owner, { ...KEEP, signal: stop.signal })) {
          pages.push(page);
          stop.abort(new Error('enough'));
        }
      }, /enough/);
      assert.equal(pages.length, 1);
      const gone = pages[0]?.rows ?? 0;
      assert.ok(gone > 0 && gone < 2 * PARTITIONS, String(gone));
      assert.ok((pages[0]?.bytes ?? 0) > 50 * gone);
      assert.equal((await fills(test)).length, 3 * PARTITIONS - gone);
      assert.deepEqual(await pruned(), { fill: 2 * PARTITIONS - gone });
      assert.ok((await fills(test)).every(({ run }) => run === 'run3'));
    });

    it('may run several times at once', async () => {
      const all = await Promise.all([pruned(), pruned(), pruned()]);
      const sum = all.reduce((rows, { fill: some = 0 }) => rows + some, 0);
      assert.equal(sum, 2 * PARTITIONS);
      assert.ok((await fills(test)).every(({ run }) => run === 'run3'));
    });

    it('keeps no fill waiting: not of a partition that it is at, nor one that is recorded as failed', async () => {
      const statements: { text: string; values: readonly unknown[] }[] = [];
      const recording = {
        query: (text: string, values: readonly unknown[] = []) => {
          statements.push({ text, values });
          return owner.query(text, values);
        },
      } as unknown as Database;
      await failed('2024-02-01');
      await filled('2024-02-01');
      const open = await begun();
      // Nothing goes yet, and the statements are those that will be run.
      for await (const page of prune(recording, { keepMs: 365 * DAY_MS, dryRun: false, signal: never }))
        assert.equal(page.rows, 0);
      await age(400);
      await withClient(test.ownerUrl, async (client) => {
        await client.query('BEGIN');
        let removed = 0;
        for (const { text, values } of statements.filter(({ text }) => text.includes('DELETE FROM'))) {
          const { rows } = await client.query<{ rows?: number }>(text, [...values]);
          removed += rows[0]?.rows ?? 0;
        }
        assert.ok(removed > 1_000, String(removed));
        // All that prune has removed is locked until it commits, for longer than any page takes.
        await within(
          'filling, failing and noting',
          (async () => {
            await filled('2024-02-01');
            await filled('2024-02-03', open);
            await failed('2024-02-01', open);
            const other = await begun();
            await asWorker((database) => noteBackfill(database, { run: other, concurrency: 1, stopping: false }));
            await ended(other);
          })(),
        );
        await client.query('COMMIT');
      });
    });
  });

  it('is refused to a worker’s role, which may only count, and told what to do', async () => {
    await asSuperuser(test, `REVOKE DELETE ON repave.fill FROM ${test.workerRole}`);
    await asWorker(async (database) => {
      const started = prune(database, { ...KEEP, signal: never });
      const failure = await failsAs(started.next(), 'PermissionDenied');
      assert.match(failure.message, /REPAVE_MIGRATE_URL/);
      for await (const page of prune(database, { ...KEEP, dryRun: true, signal: never })) assert.equal(page.rows, 0);
    });
  });
});
