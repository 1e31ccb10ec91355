import assert from 'node:assert/strict';
import { Installation } from '../chaos/installation.js';
import { document, repave } from '../cli/repave.js';
import { testTemporal } from '../support/temporal.js';
import { createNamespace } from './temporal-cli.js';

const ZONES = ['UTC', 'America/New_York', 'Asia/Kolkata'] as const;
/** Round the day on which New York's clock goes forward. */
const RANGE = '2024-03-09..2024-03-11';

const pipeline = (name: string, header: string): string => `-- repave
-- target: ${name}
-- partition: ${header}
SELECT at, at::date::text AS local_date, (:date)::text AS first, (:end_date)::text AS after_last, :key AS key
FROM   event
WHERE  at >= :start AND at < :end
`;
const PIPELINES = {
  'utc_days.sql': pipeline('utc_days', '{ column: at, by: day }'),
  'new_york_days.sql': pipeline('new_york_days', '{ column: at, by: day, zone: America/New_York }'),
};
const NAMES = ['utc_days', 'new_york_days'] as const;

const TABLES = `
  CREATE TABLE event (at timestamptz NOT NULL);
  INSERT INTO event SELECT generate_series(timestamptz '2024-03-08 00:00Z', '2024-03-13 00:00Z', '30 minutes');
  ${NAMES.map((name) => `CREATE TABLE ${name} (at timestamptz NOT NULL, local_date text, first text, after_last text, key text);`).join('\n')}`;

/** All that a zone must not change. */
interface Outcome {
  readonly plan: unknown;
  readonly results: readonly unknown[];
  readonly ids: readonly string[];
  readonly ledger: readonly unknown[];
  readonly rows: readonly unknown[];
}

describe('the time zone of worker, command and database session', function () {
  this.timeout(300_000);
  const outcomes = new Map<string, Promise<Outcome>>();

  before(() => {
    for (const zone of ZONES) {
      const outcome = outcomeUnder(zone);
      outcome.catch(() => undefined);
      outcomes.set(zone, outcome);
    }
  });

  it('UTC: each day has its hours', async () => {
    const outcome = await outcomes.get('UTC');
    assert.ok(outcome);
    assert.deepEqual(
      outcome.ledger.map((row) => Object.values(row as object).join(' ')),
      [
        'new_york_days 2024-03-09 2024-03-09T05:00:00Z 2024-03-10T05:00:00Z 48',
        'new_york_days 2024-03-10 2024-03-10T05:00:00Z 2024-03-11T04:00:00Z 46',
        'new_york_days 2024-03-11 2024-03-11T04:00:00Z 2024-03-12T04:00:00Z 48',
        'utc_days 2024-03-09 2024-03-09T00:00:00Z 2024-03-10T00:00:00Z 48',
        'utc_days 2024-03-10 2024-03-10T00:00:00Z 2024-03-11T00:00:00Z 48',
        'utc_days 2024-03-11 2024-03-11T00:00:00Z 2024-03-12T00:00:00Z 48',
      ],
    );
    assert.deepEqual(
      outcome.ids.filter((id) => id.startsWith('utc')),
      ['utc_days/2024-03-09', 'utc_days/2024-03-10', 'utc_days/2024-03-11'],
    );
  });

  for (const zone of ZONES.slice(1)) {
    it(`${zone}: the same plans, keys, windows, ids and rows`, async () => {
      assert.deepEqual(await outcomes.get(zone), await outcomes.get('UTC'));
    });
  }
});

async function outcomeUnder(zone: string): Promise<Outcome> {
  const namespace = await createNamespace();
  const installation = await Installation.open({ pipelines: PIPELINES, tables: TABLES, namespace });
  try {
    const { database, project, taskQueue } = installation;
    await installation.look(`ALTER ROLE ${database.workerRole} IN DATABASE ${database.name} SET timezone = '${zone}'`);
    await installation.startWorker({ env: { TZ: zone } });
    const env = {
      TZ: zone,
      DATABASE_URL: database.url,
      REPAVE_TASK_QUEUE: taskQueue,
      TEMPORAL_NAMESPACE: namespace,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
    };
    const run = async (...words: string[]): Promise<Record<string, unknown>> => {
      const ended = await repave(project, words, env);
      assert.equal(ended.code, 0, ended.stderr);
      return document(ended);
    };
    const plan = await run('plan', 'new_york_days', RANGE, '--json');
    const { runId, ...told } = await run('backfill', 'utc_days', RANGE, '--json');
    assert.ok(runId);
    const byClient = await installation.client.backfill({ pipeline: 'new_york_days', keys: [RANGE] });
    const results = [told, { id: byClient.id, result: await byClient.result() }];
    return {
      plan,
      results,
      ids: await workflowIds(installation, results),
      ledger: await database.sql(`
        SELECT pipeline, key, to_char(window_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS first,
               to_char(window_end AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS after_last, rows_inserted::int AS rows
          FROM repave.fill ORDER BY pipeline, key`),
      rows: await database.sql(
        NAMES.map(
          (name) =>
            `SELECT '${name}' AS target, extract(epoch FROM at)::int AS second, local_date, first, after_last, key FROM ${name}`,
        ).join(' UNION ALL ') + ' ORDER BY 1, 2',
      ),
    };
  } finally {
    await installation.close();
  }
}

/** The ids of the backfills and of their children. */
async function workflowIds({ temporal }: Installation, results: readonly Record<string, unknown>[]): Promise<string[]> {
  const ids = results.map(({ id }) => String(id));
  const children = ids.map(async (id) => {
    const { events } = await temporal.workflow.getHandle(id).fetchHistory();
    return (events ?? []).flatMap(
      (event) => event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId ?? [],
    );
  });
  return [...ids, ...(await Promise.all(children)).flat()].sort();
}
