import assert from 'node:assert/strict';
import { until } from '../chaos/until.js';
import { openTwoNamespaces, type TwoNamespaces } from './two-namespaces.js';

const PIPELINE = 'two_batches';
/** The day at which both meet: the third of one batch, the first of the other. */
const MEETING = '2024-03-03';
const ROWS = 200;

const query = (source: string): string => `-- repave
-- target: target
-- partition: { column: day, by: day }
-- batch: 4
SELECT :date AS day, '${source}' AS source, number
FROM   held(:key) CROSS JOIN generate_series(1, ${ROWS}) AS number
`;

describe('two backfills that overlap in part of a batch, and a day alone', function () {
  this.timeout(300_000);
  let namespaces: TwoNamespaces;

  before(async () => {
    namespaces = await openTwoNamespaces(PIPELINE, query);
  });
  after(() => namespaces.close());

  it('at once, from sources that differ: each day is wholly one or the other', async () => {
    const { installation, other } = namespaces;
    const { client, database } = installation;
    await installation.hold(MEETING);
    const second = await other.backfill({ pipeline: PIPELINE, from: MEETING, to: '2024-03-10' });
    await installation.heldFills();
    const first = await client.backfill({ pipeline: PIPELINE, from: '2024-03-01', to: '2024-03-08' });
    const alone = await client.partition({ pipeline: PIPELINE, key: MEETING });
    await until('the batch and the day alone to wait for the other batch', async () => {
      return (await installation.waitingForLocks()) === 2;
    });
    await installation.release(MEETING);
    const [one, two, single] = await Promise.all([first.result(), second.result(), alone.result()]);
    assert.deepEqual([one.filled, two.filled, single.rows], [8, 8, ROWS]);

    const days = await database.sql<{ key: string; sources: string[]; rows: number; fingerprint: string }>(`
      SELECT key, array_agg(DISTINCT source) AS sources, count(*)::int AS rows, fingerprint
        FROM target JOIN repave.partition ON key = day::text GROUP BY key, fingerprint ORDER BY key`);
    assert.equal(days.length, 10);
    const sourceOf = new Map([
      [days[0]?.fingerprint, 'one'],
      [days[9]?.fingerprint, 'two'],
    ]);
    assert.equal(sourceOf.size, 2);
    for (const { key, sources, rows, fingerprint } of days) {
      assert.deepEqual({ key, sources, rows }, { key, sources: [sourceOf.get(fingerprint)], rows: ROWS });
    }
    assert.deepEqual(
      await database.sql(`
        SELECT count(*)::int AS fills, count(DISTINCT (key, run))::int AS once, count(DISTINCT key)::int AS days FROM repave.fill`),
      [{ fills: 17, once: 17, days: 10 }],
    );
    assert.deepEqual(
      await installation.look('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()'),
      [{ deadlocks: 0 }],
    );
    assert.deepEqual(await installation.leftBehind(), []);
  });

  it('in one Temporal and of the same range: others wait for the first, and do what is left for them', async () => {
    const { installation } = namespaces;
    const { client, database } = installation;
    const keys = ['2024-04-01', '2024-04-02'];
    await installation.hold('2024-04-01');
    const first = await client.backfill({ pipeline: PIPELINE, keys });
    await installation.heldFills(1);
    const second = await client.backfill({ pipeline: PIPELINE, from: '2024-04-01', to: '2024-04-02' });
    const third = await client.backfill({ pipeline: PIPELINE, keys, only: ['missing'] });
    for (const { id } of [second, third]) {
      await until(`${id} to wait for the first`, async () => {
        const { raw } = await client.temporal.workflow.getHandle(id).describe();
        return raw.pendingActivities?.some(({ activityType }) => activityType?.name === 'awaitPartitions');
      });
    }
    await installation.release('2024-04-01');
    const [one, two, three] = await Promise.all([first.result(), second.result(), third.result()]);
    assert.deepEqual([one.filled, two.filled], [2, 2]);
    assert.deepEqual([three.filled, three.skipped], [0, 2]);
    assert.deepEqual(
      await database.sql(
        `SELECT key, count(*)::int AS fills, count(DISTINCT run)::int AS runs FROM repave.fill WHERE key >= '2024-04' GROUP BY 1 ORDER BY 1`,
      ),
      keys.map((key) => ({ key, fills: 2, runs: 2 })),
    );
  });
});
