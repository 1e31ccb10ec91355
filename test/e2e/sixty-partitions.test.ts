import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { Installation } from '../chaos/installation.js';

/** Fewer than the two backfills ask for together. */
const FILLS = 6;
/** Connections that cancel and watch, beside those of fills. */
const CONTROL = 3;
const CONCURRENCY = 8;

const PIPELINES = {
  'by_day.sql': `-- repave
-- target: by_day
-- partition: { column: day, by: day, zone: America/New_York }
-- concurrency: ${CONCURRENCY}
-- create: true
SELECT at::date AS day, count(*) AS events FROM event WHERE at >= :date AND at < :end_date GROUP BY 1
`,
  'by_hour.sql': `-- repave
-- target: by_hour
-- partition: { column: at, by: hour, zone: America/New_York }
-- concurrency: ${CONCURRENCY}
SELECT at, :key AS key FROM event CROSS JOIN held(:key) WHERE at >= :start AND at < :end
`,
};

describe('two pipelines of 60 partitions each, 8 of each at once', function () {
  this.timeout(300_000);
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({
      pipelines: PIPELINES,
      tables: `
        CREATE TABLE event (at timestamptz NOT NULL);
        INSERT INTO event SELECT generate_series(timestamptz '2024-02-09 05:00Z', '2024-04-09 03:59Z', '20 minutes');
        CREATE TABLE by_hour (at timestamptz NOT NULL, key text NOT NULL);`,
    });
    const { database } = installation;
    // The worker's own, so that it may attach parts.
    await installation.look(
      `GRANT CREATE ON SCHEMA public TO ${database.workerRole}; SET ROLE ${database.workerRole};
       CREATE TABLE public.by_day (day date NOT NULL, events int) PARTITION BY RANGE (day); RESET ROLE`,
    );
    await installation.startWorker({ env: { REPAVE_FILLS: String(FILLS) } });
  });
  after(() => installation.close());

  it('end well over a clock change: exact, with no deadlock, and no more connections than the worker may have', async () => {
    const { client, database } = installation;
    // Two of the hours are held until both are open, while the days go on beside them.
    const held = ['2024-03-09T00Z', '2024-03-09T01Z'];
    for (const key of held) await installation.hold(key);
    const hours = await client.backfill({ pipeline: 'by_hour', from: '2024-03-09T00Z', to: '2024-03-11T11Z' });
    const days = await client.backfill({ pipeline: 'by_day', from: '2024-02-09', to: '2024-04-08' });
    await installation.heldFills(2, 'by_hour');
    for (const key of held) await installation.release(key);
    let ended = false;
    const ends = Promise.all([days.result(), hours.result()]).finally(() => (ended = true));
    ends.catch(() => undefined);
    let most = 0;
    while (!ended) {
      const [now] = await installation.look<{ sessions: number }>(
        `SELECT count(*)::int AS sessions FROM pg_stat_activity
          WHERE datname = current_database() AND usename = '${database.workerRole}'`,
      );
      most = Math.max(most, now?.sessions ?? 0);
      await setTimeout(20);
    }
    const results = await ends;
    assert.deepEqual(
      results.map(({ filled, failed }) => ({ filled, failed })),
      [
        { filled: 60, failed: 0 },
        { filled: 60, failed: 0 },
      ],
    );
    assert.ok(most <= FILLS + CONTROL, `${most} connections`);

    assert.deepEqual(
      await installation.look(`
        SELECT (SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'by_day'::regclass) AS parts,
               (SELECT json_agg(events ORDER BY day) FROM by_day WHERE day IN ('2024-03-09', '2024-03-10', '2024-03-11')) AS events,
               (SELECT sum(events)::int FROM by_day) AS of_days, (SELECT count(*)::int FROM event) AS all_events,
               (SELECT count(*)::int FROM by_hour) AS of_hours, (SELECT count(DISTINCT (at, key))::int FROM by_hour) AS different`),
      [
        {
          parts: 60,
          events: [72, 69, 72],
          of_days: 60 * 72 - 3,
          all_events: 60 * 72 - 3,
          of_hours: 180,
          different: 180,
        },
      ],
    );
    assert.deepEqual(
      await installation.look('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()'),
      [{ deadlocks: 0 }],
    );
    assert.deepEqual(await installation.leftBehind(), []);
  });
});
