import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { BackfillFailed } from '../../src/client.js';
import type { BackfillResult } from '../../src/contract.js';
import { type Bed, makeBed } from '../support/bed.js';

/** Fills of a day end with the SQLSTATE that `trouble` has for it, if any; `lost` ends their connection. */
const TROUBLE = `
  CREATE TABLE trouble (key text NOT NULL, code text NOT NULL);
  CREATE FUNCTION troubled(which text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
  DECLARE found text;
  BEGIN
    SELECT code INTO found FROM public.trouble WHERE key = which;
    IF found = 'lost' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    IF found IS NOT NULL THEN RAISE EXCEPTION 'trouble' USING ERRCODE = found; END IF;
    RETURN 0;
  END $$;`;

const PIPELINE = `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- start: 2024-01-01
-- batch: 10
-- retry: { attempts: 2 }
-- checks: [{ rows: { min: 1 } }]
SELECT :date AS day, count(*) + held(:key) + troubled(:key) AS n FROM sales WHERE sold_on = :date HAVING count(*) > 0
`;

describe('a batch of days', function () {
  this.timeout(300_000);
  let bed: Bed;

  before(async () => {
    bed = await makeBed({ pipeline: PIPELINE });
    await bed.database.sql(TROUBLE);
    await bed.worker();
  });
  after(() => bed.close());

  it('has a transaction, a claim and an entry in the ledger for each, in one child and one activity', async () => {
    const { pipeline, client, database } = bed;
    const handle = await client.backfill({ pipeline, from: '2024-01-01', to: '2024-01-10' });
    const { filled, rows } = await handle.result();
    assert.deepEqual({ filled, rows }, { filled: 10, rows: 10 });
    assert.deepEqual(await children(handle.id), [`partitions ${pipeline}/2024-01-01..2024-01-10`]);
    assert.deepEqual(
      await database.sql('SELECT count(*)::int AS days, count(DISTINCT xmin::text)::int AS transactions FROM daily'),
      [{ days: 10, transactions: 10 }],
    );
    assert.deepEqual(
      await database.sql(`
        SELECT count(*)::int AS fills, count(DISTINCT key)::int AS keys, count(DISTINCT xmin::text)::int AS transactions,
               count(DISTINCT fence)::int AS claims, count(DISTINCT (run, activity))::int AS activities, max(attempt) AS attempts
          FROM repave.fill`),
      [{ fills: 10, keys: 10, transactions: 10, claims: 10, activities: 1, attempts: 1 }],
    );
    assert.deepEqual(await database.sql('SELECT key FROM repave.claim'), []);
  });

  it('ends where the list has a hole; a day alone is a child as it always was', async () => {
    const { pipeline, client } = bed;
    const handle = await client.backfill({
      pipeline,
      keys: ['2024-01-20..2024-01-22', '2024-01-24', '2024-01-26..2024-01-27'],
    });
    assert.equal((await handle.result()).filled, 6);
    assert.deepEqual((await children(handle.id)).sort(), [
      `partition ${pipeline}/2024-01-24`,
      `partitions ${pipeline}/2024-01-20..2024-01-22`,
      `partitions ${pipeline}/2024-01-26..2024-01-27`,
    ]);
  });

  it('of which one fails has nine filled and one failed by its name', async () => {
    const { pipeline, client, database } = bed;
    await database.sql(`DELETE FROM sales WHERE sold_on = '2024-02-05'`);
    const result = await incomplete(client.backfill({ pipeline, from: '2024-02-01', to: '2024-02-10' }));
    assert.deepEqual([result.filled, result.failed, result.rows], [9, 1, 9]);
    assert.deepEqual(
      result.failures.map(({ key, type }) => [key, type]),
      [['2024-02-05', 'CheckFailed']],
    );
    assert.deepEqual(await failures('2024-02'), [{ key: '2024-02-05', type: 'CheckFailed', attempt: 1 }]);
    assert.deepEqual(await states('2024-02'), { filled: 9, failed: 1 });

    const again = await incomplete(client.backfill({ pipeline, only: ['failed'] }));
    assert.deepEqual([again.total, again.failed], [1, 1]);
  });

  it('goes on with the others before it tries one again, and does none of them again', async () => {
    const { pipeline, client, database } = bed;
    await database.sql(`INSERT INTO trouble VALUES ('2024-03-02', '40001')`);
    const handle = await client.backfill({ pipeline, from: '2024-03-01', to: '2024-03-05' });
    const others = await until(async () => {
      const found = await versions('2024-03-0');
      return found.length === 4 && found;
    });
    await database.sql('DELETE FROM trouble');
    assert.equal((await handle.result()).filled, 5);
    const after = await versions('2024-03-0');
    assert.equal(after.length, 5);
    for (const version of others)
      assert.deepEqual(
        after.find(({ day }) => day === version.day),
        version,
      );
    assert.deepEqual(await failures('2024-03'), []);
    const attempts = await database.sql<{ key: string; attempt: number }>(
      `SELECT key, attempt FROM repave.fill WHERE key LIKE '2024-03-0%' ORDER BY key`,
    );
    assert.deepEqual(
      attempts.map(({ attempt }) => attempt > 1),
      [false, true, false, false, false],
    );
  });

  it('in which one ends every connection it gets fills the others all the same', async () => {
    const { pipeline, client, database } = bed;
    await database.sql(`INSERT INTO trouble VALUES ('2024-03-11', 'lost')`);
    const handle = await client.backfill({ pipeline, from: '2024-03-11', to: '2024-03-14' });
    await until(async () => {
      const fills = await database.sql(`SELECT FROM repave.fill WHERE key BETWEEN '2024-03-11' AND '2024-03-14'`);
      return fills.length === 3;
    });
    await database.sql('DELETE FROM trouble');
    assert.equal((await handle.result()).filled, 4);
  });

  it('counts the tries of each for itself', async () => {
    const { pipeline, client, database } = bed;
    await database.sql(`INSERT INTO trouble VALUES ('2024-04-01', '57014')`);
    const result = await incomplete(client.backfill({ pipeline, from: '2024-04-01', to: '2024-04-03' }));
    assert.deepEqual([result.filled, result.failed], [2, 1]);
    assert.match(result.failures[0]?.message ?? '', /\(try 2 of 2\)/);
    assert.deepEqual(await failures('2024-04'), [{ key: '2024-04-01', type: 'TimedOut', attempt: 2 }]);
  });

  it('says in its heartbeats which day it is at', async () => {
    const { pipeline, client } = bed;
    await bed.hold('2024-03-22');
    const handle = await client.backfill({ pipeline, from: '2024-03-21', to: '2024-03-23' });
    const child = client.temporal.workflow.getHandle(`${pipeline}/2024-03-21..2024-03-23`);
    await until(async () => {
      const { raw } = await child.describe().catch(() => ({ raw: undefined }));
      const [beat] = raw?.pendingActivities?.[0]?.heartbeatDetails?.payloads ?? [];
      if (!beat) return false;
      // One from a moment earlier may come first.
      const said: unknown = JSON.parse(Buffer.from(beat.data ?? '').toString());
      return isDeepStrictEqual(said, { attempt: 1, key: '2024-03-22', step: 'insert', rows: 0 });
    });
    await bed.letGo('2024-03-22');
    assert.equal((await handle.result()).filled, 3);
  });

  it('goes on in the next run where its backfill continues as new', async () => {
    const { pipeline, client, database, taskQueue } = bed;
    const handle = await client.temporal.workflow.start('backfill', {
      taskQueue,
      workflowId: `test/${pipeline}/continued`,
      args: [{ pipeline, from: '2024-01-01', to: '2024-01-31' }, { partitionsPerRun: 10 }],
    });
    const result = (await client.temporal.workflow.getHandle(handle.workflowId).result()) as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [31, 0]);
    const [{ runs = 0 } = {}] = await database.sql<{ runs: number }>(
      `SELECT count(DISTINCT run)::int AS runs FROM repave.fill WHERE key LIKE '2024-01%' AND rows_deleted > 0`,
    );
    const { runId } = await client.temporal.workflow.getHandle(handle.workflowId).describe();
    assert.notEqual(runId, handle.firstExecutionRunId);
    assert.ok(runs >= 2, String(runs));
  });

  async function incomplete(started: Promise<{ result(): Promise<BackfillResult> }>): Promise<BackfillResult> {
    try {
      await (await started).result();
    } catch (error) {
      assert.ok(error instanceof BackfillFailed, String(error));
      assert.ok(error.result, error.message);
      return error.result;
    }
    assert.fail('none of it failed');
  }

  /** The children of a backfill's only run: type and id. */
  async function children(id: string): Promise<string[]> {
    const { events } = await bed.client.temporal.workflow.getHandle(id).fetchHistory();
    return (events ?? []).flatMap((event) => {
      const started = event.startChildWorkflowExecutionInitiatedEventAttributes;
      return started ? `${started.workflowType?.name} ${started.workflowId}` : [];
    });
  }

  const failures = (month: string) =>
    bed.database.sql(
      `SELECT key, type, attempt FROM repave.failure WHERE key LIKE $1 AND failed_at = (SELECT max(failed_at) FROM repave.failure)`,
      [`${month}%`],
    );
  const states = async (month: string) =>
    Object.fromEntries(
      (
        await bed.database.sql<{ outcome: string; n: number }>(
          'SELECT outcome, count(*)::int AS n FROM repave.partition WHERE key LIKE $1 GROUP BY 1',
          [`${month}%`],
        )
      ).map(({ outcome, n }) => [outcome, n]),
    );
  const versions = (days: string) =>
    bed.database.sql<{ day: string; version: string }>(
      `SELECT day::text, xmin::text AS version FROM daily WHERE starts_with(day::text, $1) ORDER BY day`,
      [days],
    );
});

async function until<T>(ask: () => Promise<T | false>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== false) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
