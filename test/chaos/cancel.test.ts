import assert from 'node:assert/strict';
import { BackfillFailed, type BackfillHandle } from '../../src/client.js';
import type { WorkerProcess } from '../support/worker.js';
import { atOnce } from './at-once.js';
import { Installation, type OpenFill } from './installation.js';

const FROM = '2024-03-01';
const TO = '2024-03-06';
/** The day that a thawed worker fills, to show that it is awake again. */
const LATER = '2024-03-07';

const TABLES = `
  CREATE TABLE source (day date NOT NULL, version int NOT NULL);
  INSERT INTO source SELECT day, 1 FROM generate_series(date '${FROM}', '${LATER}', '1 day') AS day, generate_series(1, 10);
  CREATE TABLE target (day date NOT NULL, version int NOT NULL);`;

const PIPELINE = `-- repave
-- target: target
-- partition: { column: day, by: day }
-- start: ${FROM}
-- concurrency: 3
SELECT day, version FROM held(:key) CROSS JOIN source WHERE day >= :date AND day < :end_date
`;

interface Cancelled {
  readonly installation: Installation;
  readonly pipeline: string;
  /** The worker whose fills were cancelled. */
  readonly worker: WorkerProcess;
  readonly ledger: () => Promise<unknown[]>;
}

describe('a backfill that is cancelled in the middle of SQL', function () {
  this.timeout(600_000);

  atOnce({
    'leaves nothing behind where its worker is alive': () => cancel('cancel_alive', async () => undefined),

    'leaves nothing behind where its worker was killed': () =>
      cancel('cancel_killed', async ({ worker, installation }) => {
        await installation.startWorker();
        await worker.kill();
      }),

    'leaves nothing behind where its worker is frozen, which writes nothing once it thaws': async () => {
      let other: WorkerProcess | undefined;
      await cancel(
        'cancel_frozen',
        async ({ worker, installation }) => {
          other = await installation.startWorker();
          worker.signal('SIGSTOP');
        },
        async ({ installation, pipeline, worker, ledger }) => {
          assert.ok(other);
          assert.equal(await other.stop(), 0);
          const before = await ledger();
          worker.signal('SIGCONT');
          // The only worker now: that it fills a day shows that it runs again, and has had its time to do more.
          const { filled } = await (await installation.client.backfill({ pipeline, keys: [LATER] })).result();
          assert.equal(filled, 1);
          assert.deepEqual(await ledger(), before);
        },
      );
    },
  });
});

/** Fills six days, cancels the next backfill of them while three fills are open, looks, and fills them anew. */
async function cancel(
  pipeline: string,
  disturb: (cancelled: Cancelled) => Promise<void>,
  afterwards: (cancelled: Cancelled) => Promise<void> = async () => undefined,
): Promise<void> {
  const installation = await Installation.open({ pipelines: { [`${pipeline}.sql`]: PIPELINE }, tables: TABLES });
  try {
    const { client, database } = installation;
    // As many slots as fills are held: frozen, it has no poll open that would take a fill from another.
    const worker = await installation.startWorker({ env: { REPAVE_FILLS: '3' } });
    const range = { pipeline, from: FROM, to: TO };
    await (await client.backfill(range)).result();
    await database.sql('UPDATE source SET version = 2');
    const ledger = (): Promise<unknown[]> =>
      database.sql('SELECT key, run, rows_inserted::int AS rows FROM repave.fill WHERE key <= $1 ORDER BY id', [TO]);
    const before = await ledger();

    await installation.hold();
    const handle = await client.backfill(range);
    const open = await installation.heldFills(3);
    await disturb({ installation, pipeline, worker, ledger });
    await handle.cancel();
    await assert.rejects(handle.result(), (error) => error instanceof BackfillFailed && error.type === 'Cancelled');

    assert.deepEqual(await installation.leftBehind(), []);
    assert.deepEqual(await sessionsOf(installation, open), []);
    assert.deepEqual(
      await childrenOf(installation, handle),
      open.map(({ key }) => `${pipeline}/${key} CANCELLED`),
    );
    assert.deepEqual(await ledger(), before);
    assert.deepEqual(await versions(installation), [{ version: 1, days: 6, rows: 60 }]);

    await installation.release();
    const again = await client.backfill(range);
    assert.equal(again.joined, false);
    const { filled, rows } = await again.result();
    assert.deepEqual({ filled, rows }, { filled: 6, rows: 60 });
    assert.deepEqual(await versions(installation), [{ version: 2, days: 6, rows: 60 }]);
    await afterwards({ installation, pipeline, worker, ledger });
  } finally {
    await installation.close();
  }
}

/** What the six days hold. */
async function versions(installation: Installation): Promise<unknown[]> {
  return installation.database.sql(
    'SELECT version, count(DISTINCT day)::int AS days, count(*)::int AS rows FROM target WHERE day <= $1 GROUP BY 1',
    [TO],
  );
}

/** Sessions that are named after a run, whatever they do. */
async function sessionsOf(installation: Installation, fills: readonly OpenFill[]): Promise<unknown[]> {
  return installation.look(
    'SELECT pid, application_name, state FROM pg_stat_activity WHERE application_name LIKE ANY ($1)',
    [fills.map(({ run }) => `repave ${run}/%`)],
  );
}

/** Every child that a backfill has started, and how it stands. */
async function childrenOf({ temporal }: Installation, { id, runId }: BackfillHandle): Promise<string[]> {
  const { events } = await temporal.workflow.getHandle(id, runId).fetchHistory();
  const started = (events ?? []).flatMap((event) => event.startChildWorkflowExecutionInitiatedEventAttributes ?? []);
  const children = started.map(async ({ workflowId }) => {
    const { status } = await temporal.workflow.getHandle(workflowId ?? '').describe();
    return `${workflowId} ${status.name}`;
  });
  return (await Promise.all(children)).sort();
}
