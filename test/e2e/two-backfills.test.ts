import assert from 'node:assert/strict';
import { until } from '../chaos/until.js';
import { openTwoNamespaces, type TwoNamespaces } from './two-namespaces.js';

const PIPELINE = 'two_backfills';
/** The day at which both meet, each in its transaction. */
const MEETING = '2024-03-05';
const ROWS = 500;

const query = (source: string): string => `-- repave
-- target: target
-- partition: { column: day, by: day }
-- concurrency: 3
SELECT :date AS day, '${source}' AS source, number
FROM   held(:key) CROSS JOIN generate_series(1, ${ROWS}) AS number
`;

describe('two backfills of overlapping days', function () {
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
    const second = await other.backfill({ pipeline: PIPELINE, from: MEETING, to: '2024-03-15' });
    await installation.heldFills();
    const first = await client.backfill({ pipeline: PIPELINE, from: '2024-03-01', to: '2024-03-10' });
    await until('the first backfill to wait for the second', async () => {
      return (await installation.waitingForLocks()) > 0;
    });
    await installation.release(MEETING);
    const [one, two] = await Promise.all([first.result(), second.result()]);
    assert.deepEqual([one.filled, two.filled], [10, 11]);

    const days = await database.sql<{
      key: string;
      sources: string[];
      rows: number;
      run: string;
      fingerprint: string;
    }>(`
      SELECT key, array_agg(DISTINCT source) AS sources, count(*)::int AS rows, run, fingerprint
        FROM target JOIN repave.partition ON key = day::text GROUP BY key, run, fingerprint ORDER BY key`);
    assert.equal(days.length, 15);
    const sourceOf = new Map([
      [days[0]?.fingerprint, 'one'],
      [days[14]?.fingerprint, 'two'],
    ]);
    assert.equal(sourceOf.size, 2);
    for (const { key, sources, rows, fingerprint } of days) {
      assert.deepEqual({ key, sources, rows }, { key, sources: [sourceOf.get(fingerprint)], rows: ROWS });
    }
    assert.deepEqual(
      await database.sql(`SELECT count(*)::int AS fills, count(DISTINCT key)::int AS keys FROM repave.fill`),
      [{ fills: 21, keys: 15 }],
    );
    assert.deepEqual(
      await installation.look('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()'),
      [{ deadlocks: 0 }],
    );
  });
});
