import assert from 'node:assert/strict';
import { MAX_LISTED_FAILURES } from '../../src/contract.js';
import { backfillProgress } from '../../src/warehouse/backfill-progress.js';
import { failedKeys, readBackfills, runKeys } from '../../src/warehouse/backfills.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { failedPartitions } from '../../src/warehouse/failed-partitions.js';
import { fillPace } from '../../src/warehouse/fill-pace.js';
import { look } from '../../src/warehouse/ledger-entry.js';
import { partitionStates } from '../../src/warehouse/partition-states.js';
import { knownBetween, partitionHistory, pipelineCounts } from '../../src/warehouse/partitions.js';
import { runOutcomes } from '../../src/warehouse/run-outcomes.js';
import type { Session } from '../../src/warehouse/session.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, sqlPipeline } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';

/** Pages that a look may read of the large ledger for each of the small one: its indexes are two levels higher, and its rows lie apart. */
const TIMES = 5;
const KEY = '2024-03-01';
const pipeline = sqlPipeline('SELECT :date::date AS day', { name: 'asked', fingerprint: 'v1:asked' });

/** Rows of `repave.partition` and `repave.fill`: `partitions` of each pipeline, filled by as many backfills as `backfills` says. */
const ROWS = `
  WITH kept AS (
    INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence, failed_at, failure_type, failure_message)
    SELECT p, to_char(date '2024-01-01' + k, 'YYYY-MM-DD'), CASE WHEN k % 20 = 0 THEN 'failed' ELSE 'filled' END, 10, 'v1:' || p, now(),
           p || '/run', 1, 1000, now(), 'DataError', 'no'
      FROM unnest($1::text[]) p, generate_series(0, $2::int - 1) k)
  INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint,
                           rows_deleted, rows_inserted, seconds, checks, warnings, backfill, started_by)
  SELECT p, to_char(date '2024-01-01' + k, 'YYYY-MM-DD'), date '2024-01-01' + k, date '2024-01-02' + k, p || '/' || b || '/' || k, '1', 1, b, 'v1:' || p,
         10, 10, 0.5, '[]', '{}', p || '/backfill' || b, 'ana@laptop'
    FROM generate_series(1, $3::int) b, unnest($1::text[]) p, generate_series(0, $2 - 1) k`;

/** Their backfills, the failures of each and its list, all as many as one has partitions. */
const BACKFILLS = `
  WITH backfills AS (
    INSERT INTO repave.backfill (run, id, pipeline, input, total)
    SELECT p || '/backfill' || b, 'backfill/' || p || '/' || b, p, '{}', $2::int FROM unnest($1::text[]) p, generate_series(1, $3::int) b
    RETURNING run, pipeline),
  failures AS (
    INSERT INTO repave.failure (pipeline, key, run, attempt, fence, type, message, backfill)
    SELECT pipeline, to_char(date '2024-01-01' + k, 'YYYY-MM-DD'), run || '/' || k, 1, 1000, 'DataError', 'no', run
      FROM backfills, generate_series(0, $2 - 1, 20) k)
  INSERT INTO repave.run_key (run, seq, key)
  SELECT run, k + 1, to_char(date '2024-01-01' + k, 'YYYY-MM-DD') FROM backfills, generate_series(0, $2 - 1) k WHERE run LIKE '%1'`;

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** What the statements of a look read. */
interface Reading {
  readonly pages: number;
  /** Tables that were read from end to end. */
  readonly scanned: readonly string[];
}

describe('a million fills in the ledger', function () {
  this.timeout(600_000);
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

  /** What is looked at while a million other rows lie about. */
  const LOOKS: Readonly<Record<string, (database: Database) => Promise<unknown>>> = {
    'a plan of a year': (recording) => partitionStates(recording, 'asked', [{ from: '2024-01-01', to: '2024-12-31' }]),
    'how long a plan will take': (recording) => fillPace(recording, 'asked'),
    'a page of a list': (recording) => runKeys(recording, 'asked/backfill1', 100, 100),
    'the status of a pipeline': async (recording) => {
      await pipelineCounts(recording, 'asked', pipeline.fingerprint);
      await knownBetween(recording, 'asked', '2024-01-01', '2024-12-31');
      assert.equal((await failedPartitions(recording, 'asked', MAX_LISTED_FAILURES)).length, MAX_LISTED_FAILURES);
    },
    'the newest backfills': (recording) => readBackfills(recording, { limit: 10 }),
    'the backfills of a pipeline': (recording) => readBackfills(recording, { pipeline: 'asked', limit: 10 }),
    'a backfill by its id': (recording) => readBackfills(recording, { id: 'backfill/asked/1', limit: 10 }),
    'the progress of a backfill': async (recording) => {
      const progress = await backfillProgress(recording, 'asked/backfill2');
      assert.deepEqual([progress?.filled, progress?.failed], [400, 20]);
    },
    'what failed in a backfill': async (recording) => {
      assert.equal((await failedKeys(recording, 'asked/backfill2', '2024-03-01', 10)).length, 10);
    },
    'the history of a partition': async (recording) => {
      assert.equal((await partitionHistory(recording, 'asked', KEY)).length, 4);
    },
    'what a fill looks at under its lock': async (recording) => {
      const session = {
        rows: (text: string, values: unknown[]) => recording.query(text, values),
      } as unknown as Session;
      const target = { name: 'public.target', written: '"target"', scope: {} };
      const { latest } = await look(session, fillRequest(pipeline, { key: KEY }), target, 1_000);
      assert.ok(latest > 0);
    },
    'what a batch has come to': (recording) =>
      runOutcomes(recording, 'asked', ['2024-02-28', '2024-02-29', KEY], 'asked/1/59'),
  };

  /** Takes each look once, and explains each of its statements as the server runs it. */
  async function read(): Promise<Map<string, Reading>> {
    const readings = new Map<string, Reading>();
    for (const [name, take] of Object.entries(LOOKS)) {
      let pages = 0;
      const scanned: string[] = [];
      const recording = {
        query: async (text: string, values: readonly unknown[] = []) => {
          const [row] = await database.query<{ 'QUERY PLAN': readonly [{ Plan: PlanNode }] }>(
            `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
            values,
          );
          assert.ok(row);
          const { Plan: plan } = row['QUERY PLAN'][0];
          pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
          scanned.push(...scansOf(plan));
          return database.query(text, values);
        },
      } as unknown as Database;
      await take(recording);
      readings.set(name, { pages, scanned });
    }
    return readings;
  }

  it('slow no look down: each reads its own rows by an index, before the tables are analysed and after', async () => {
    for (const text of [ROWS, BACKFILLS]) await test.sql(text, [['asked'], 400, 2]);
    await asSuperuser(test, 'ANALYZE');
    const small = await read();

    const others = Array.from({ length: 100 }, (_, i) => `other/${i}`);
    await withoutIndexes(test, 'fill', async () => {
      for (const text of [ROWS, BACKFILLS]) await test.sql(text, [others, 1_000, 10]);
    });
    const [count] = await test.sql(
      `SELECT (SELECT count(*)::int FROM repave.fill) AS fills, (SELECT count(*)::int FROM repave.partition) AS partitions`,
    );
    assert.deepEqual(count, { fills: 1_000_800, partitions: 100_400 });
    for (const stage of ['not analysed', 'analysed']) {
      const large = await read();
      for (const [name, { pages, scanned }] of large) {
        if (stage === 'not analysed' && COUNTS.has(name)) continue;
        const before = small.get(name)?.pages ?? 0;
        assert.deepEqual(scanned, [], `${stage}: ${name} reads a table from end to end`);
        assert.ok(pages <= TIMES * before + 20, `${stage}: ${name} read ${before} pages, and now ${pages}`);
      }
      await asSuperuser(test, 'ANALYZE');
    }
  });
});

/**
 * What counts rows of its own. Statistics from before the table grew a thousandfold say that those are most of it, and then it is
 * read from end to end, as it should be; autovacuum analyses a table that has grown by a tenth.
 */
const COUNTS = new Set(['the status of a pipeline', 'the progress of a backfill']);

/** Tables that hold many rows; of claims there are as many as fills that run. */
const GROWING = new Set(['fill', 'partition', 'failure', 'run_key']);

function scansOf(node: PlanNode): string[] {
  const table = node['Relation Name'];
  const own = node['Node Type'] === 'Seq Scan' && table !== undefined && GROWING.has(table) ? [table] : [];
  return [...own, ...(node.Plans ?? []).flatMap(scansOf)];
}

/** Does `work` on a table whose indexes are made anew after it, and that is in no log: a fraction of the time. */
async function withoutIndexes(test: TestDatabase, table: string, work: () => Promise<void>): Promise<void> {
  const indexes = await test.sql<{ drop: string; definition: string }>(
    `SELECT CASE WHEN c.conname IS NULL THEN format('DROP INDEX %s', i.indexrelid::regclass)
                 ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', i.indrelid::regclass, c.conname) END AS drop,
            pg_get_indexdef(i.indexrelid) AS definition
       FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.conrelid = i.indrelid
      WHERE i.indrelid = format('repave.%I', $1::text)::regclass`,
    [table],
  );
  await test.sql(`ALTER TABLE repave.${table} SET UNLOGGED`);
  for (const { drop } of indexes) await test.sql(drop);
  await work();
  for (const { definition } of indexes) await test.sql(`SET maintenance_work_mem = '256MB'; ${definition}`);
}
