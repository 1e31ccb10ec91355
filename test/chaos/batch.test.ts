import assert from 'node:assert/strict';
import { BackfillFailed, type BackfillHandle } from '../../src/client.js';
import { createProject, type WorkerProcess } from '../support/worker.js';
import { atOnce } from './at-once.js';
import { Installation, type OpenFill } from './installation.js';
import { until } from './until.js';

const DAYS = ['2024-03-01', '2024-03-02', '2024-03-03', '2024-03-04', '2024-03-05', '2024-03-06'];
const [FROM = '', , HELD = ''] = DAYS;
const TO = DAYS.at(-1) ?? '';
/** The day that a thawed worker fills, to show that it is awake again. */
const LATER = '2024-03-07';

/** Of each pair one batch is to go on, and one is to be cancelled. */
const FATES = ['goes_on', 'is_cancelled'] as const;
type Fate = (typeof FATES)[number];

const TABLES = `
  CREATE TABLE source (day date NOT NULL, version int NOT NULL);
  INSERT INTO source SELECT day, 1 FROM generate_series(date '${FROM}', '${LATER}', '1 day') AS day, generate_series(1, 10);
  ${FATES.map((fate) => `CREATE TABLE ${fate} (day date NOT NULL, version int NOT NULL);`).join('\n')}`;

const pipeline = (fate: Fate): string => `-- repave
-- target: ${fate}
-- partition: { column: day, by: day }
-- start: ${FROM}
-- batch: 10
SELECT day, version FROM held('${fate} ' || :key) CROSS JOIN source WHERE day >= :date AND day < :end_date
`;

/** A batch that stands in its third day, the first two committed. */
interface Batch {
  readonly fate: Fate;
  readonly pipeline: string;
  readonly handle: BackfillHandle;
  readonly open: OpenFill;
  readonly done: readonly Version[];
}

/** Two such, on a worker without a slot to spare. */
interface Standing extends Readonly<Record<Fate, Batch>> {
  readonly installation: Installation;
  readonly worker: WorkerProcess;
}

/** What a day's rows are, and the transaction that wrote them. */
interface Version {
  readonly day: string;
  readonly version: number;
  readonly rows: number;
  readonly writer: string;
}

describe('a batch in the middle, finished or cancelled', function () {
  this.timeout(600_000);

  atOnce({
    'goes on where it stood after its worker was killed, and leaves nothing behind': () =>
      standing('batch_killed', async ({ installation, worker, goes_on, is_cancelled }) => {
        await installation.startWorker();
        await worker.kill();
        await Promise.all([goesOn(installation, goes_on), cancelled(installation, is_cancelled)]);
        await filledOnce(installation, goes_on);
      }),

    'is done by another where its worker is frozen, which does nothing more once it thaws': () =>
      standing('batch_frozen', async ({ installation, worker, goes_on, is_cancelled }) => {
        const other = await installation.startWorker();
        worker.signal('SIGSTOP');
        await Promise.all([goesOn(installation, goes_on), cancelled(installation, is_cancelled)]);
        await filledOnce(installation, goes_on);
        const before = await everything(installation);
        assert.equal(await other.stop(), 0);
        worker.signal('SIGCONT');
        for (const batch of [goes_on, is_cancelled]) await fillsAgain(installation, batch);
        assert.deepEqual(await everything(installation), before);
        // What the thawed batches still do until they are refused may end a moment after the new fills.
        await until('nothing to be left behind', async () => (await installation.leftBehind()).length === 0);
      }),

    'is ended where its worker is frozen and no other may take it over': () =>
      standing('batch_orphaned', async ({ installation, worker, goes_on, is_cancelled }) => {
        const batches = [goes_on, is_cancelled];
        // Another version of the pipelines, which may end a fill and not go on with it.
        const files = batches.map(({ fate, pipeline: file }): [string, string] => [
          `${file}.sql`,
          pipeline(fate).replace('SELECT', '-- version: 2\nSELECT'),
        ]);
        await installation.startWorker({ project: await createProject(Object.fromEntries(files)) });
        worker.signal('SIGSTOP');
        await Promise.all(batches.map((batch) => cancelled(installation, batch)));
        assert.deepEqual(await installation.leftBehind(), []);
      }),

    'is rolled back by a live worker before it says cancelled, and by one that stops, for another to finish': () =>
      standing('batch_stopped', async ({ installation, worker, goes_on, is_cancelled }) => {
        await cancelled(installation, is_cancelled);
        await installation.startWorker();
        assert.equal(await worker.stop(), 0);
        await goesOn(installation, goes_on);
        await filledOnce(installation, goes_on);
      }),
  });
});

/** Fills six days with version 1, then has the batches that fill them with version 2 stand in their third day. */
async function standing(name: string, test: (batches: Standing) => Promise<void>): Promise<void> {
  const names = FATES.map((fate) => [fate, `${name}_${fate}`] as const);
  const pipelines = Object.fromEntries(names.map(([fate, file]) => [`${file}.sql`, pipeline(fate)]));
  const installation = await Installation.open({ pipelines, tables: TABLES });
  try {
    const worker = await installation.startWorker({ env: { REPAVE_FILLS: '2', REPAVE_SHUTDOWN_GRACE: '1' } });
    const backfill = (file: string) => installation.client.backfill({ pipeline: file, from: FROM, to: TO });
    for (const [, file] of names) await (await backfill(file)).result();
    await installation.database.sql('UPDATE source SET version = 2');
    for (const fate of FATES) await installation.hold(`${fate} ${HELD}`);
    const batches: Partial<Record<Fate, Batch>> = {};
    for (const [fate, file] of names) {
      const handle = await backfill(file);
      const [open] = await installation.heldFills(1, file);
      assert.ok(open);
      const done = (await versions(installation, fate)).filter(({ version }) => version === 2);
      assert.deepEqual(
        done.map(({ day }) => day),
        DAYS.slice(0, 2),
      );
      batches[fate] = { fate, pipeline: file, handle, open, done };
    }
    const { goes_on, is_cancelled } = batches;
    assert.ok(goes_on && is_cancelled);
    await test({ installation, worker, goes_on, is_cancelled });
  } finally {
    await installation.close();
  }
}

/** Waits until another attempt stands at the held day, lets it go, and waits for the end. */
async function goesOn(installation: Installation, { fate, handle, open }: Batch): Promise<void> {
  await until('another attempt at the day that is held', async () =>
    (await installation.openFills()).some(
      ({ key, run, pid, wait }) => key === HELD && run === open.run && pid !== open.pid && wait === 'PgSleep',
    ),
  );
  await installation.release(`${fate} ${HELD}`);
  // Of whichever attempt: what an earlier one has done is counted from the ledger.
  const { filled, rows } = await handle.result();
  assert.deepEqual({ filled, rows }, { filled: DAYS.length, rows: 10 * DAYS.length });
}

/** One child, one activity of several attempts; days that were done are the same rows still, and none was filled twice. */
async function filledOnce(installation: Installation, { fate, pipeline, handle, done }: Batch): Promise<void> {
  const now = await versions(installation, fate);
  assert.deepEqual(
    now.map(({ day, version, rows }) => ({ day, version, rows })),
    DAYS.map((day) => ({ day, version: 2, rows: 10 })),
  );
  assert.deepEqual(now.slice(0, done.length), done);
  assert.deepEqual(
    await installation.database.sql(
      `SELECT count(*)::int AS fills, count(DISTINCT key)::int AS days, count(DISTINCT run)::int AS runs FROM repave.fill
        WHERE pipeline = $1 AND rows_deleted > 0`,
      [pipeline],
    ),
    [{ fills: DAYS.length, days: DAYS.length, runs: 1 }],
  );
  assert.deepEqual(await installation.database.sql('SELECT key FROM repave.failure'), []);
  const { temporal } = installation;
  const { events } = await temporal.workflow.getHandle(handle.id, handle.runId).fetchHistory();
  const children = (events ?? []).flatMap((event) => event.startChildWorkflowExecutionInitiatedEventAttributes ?? []);
  assert.deepEqual(
    children.map(({ workflowId }) => workflowId),
    [`${pipeline}/${FROM}..${TO}`],
  );
  const child = await temporal.workflow.getHandle(`${pipeline}/${FROM}..${TO}`).fetchHistory();
  const scheduled = (child.events ?? []).filter((event) => event.activityTaskScheduledEventAttributes);
  const attempts = (child.events ?? []).flatMap((event) => event.activityTaskStartedEventAttributes?.attempt ?? []);
  assert.equal(scheduled.length, 1);
  assert.ok(Number(attempts.at(-1)) > 1, String(attempts));
}

/** Cancels a batch: nothing of its run is left when it says so, what was committed stays, and the rest is as it was. */
async function cancelled(installation: Installation, { fate, pipeline, handle, open, done }: Batch): Promise<void> {
  await handle.cancel();
  await assert.rejects(handle.result(), (error) => error instanceof BackfillFailed && error.type === 'Cancelled');
  assert.deepEqual(
    await installation.look(
      `SELECT pid, state, xact_start FROM pg_stat_activity WHERE starts_with(application_name, $1)`,
      [`repave ${open.run}/`],
    ),
    [],
  );
  const { status } = await installation.temporal.workflow.getHandle(`${pipeline}/${FROM}..${TO}`).describe();
  assert.equal(status.name, 'CANCELLED');
  // Another attempt may have done the days behind it before the cancel came through; what is committed stays and is counted.
  const fills = await installation.database.sql<{ key: string }>('SELECT key FROM repave.fill WHERE run = $1', [
    open.run,
  ]);
  const committed = fills.map(({ key }) => key);
  assert.ok(!committed.includes(HELD) && done.every(({ day }) => committed.includes(day)), String(committed));
  assert.deepEqual(
    (await versions(installation, fate)).map(({ day, version, rows }) => ({ day, version, rows })),
    DAYS.map((day) => ({ day, version: committed.includes(day) ? 2 : 1, rows: 10 })),
  );
  const backfills = 'SELECT outcome, filled::int AS filled, failed::int AS failed FROM repave.backfill WHERE run = $1';
  assert.deepEqual(await installation.database.sql(backfills, [handle.runId]), [
    { outcome: 'cancelled', filled: committed.length, failed: 0 },
  ]);
}

/** Has the only worker fill a day: that it does shows that it runs again, and has had its time to do more. */
async function fillsAgain({ client }: Installation, { pipeline }: Batch): Promise<void> {
  const { filled } = await (await client.backfill({ pipeline, keys: [LATER] })).result();
  assert.equal(filled, 1);
}

async function everything(installation: Installation): Promise<unknown[]> {
  const fills = 'SELECT id, key, run, attempt FROM repave.fill WHERE key <= $1 ORDER BY id';
  return [
    ...(await Promise.all(FATES.map((fate) => versions(installation, fate)))),
    await installation.database.sql(fills, [TO]),
  ];
}

async function versions({ database }: Installation, fate: Fate): Promise<Version[]> {
  return database.sql<Version & Record<string, unknown>>(
    `SELECT day::text, version, count(*)::int AS rows, xmin::text AS writer FROM ${fate} WHERE day <= $1
      GROUP BY day, version, xmin::text ORDER BY day`,
    [TO],
  );
}
