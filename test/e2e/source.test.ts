import assert from 'node:assert/strict';
import pg from 'pg';
import { BackfillFailed } from '../../src/client.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Proxy } from '../support/proxy.js';
import type { WorkerProcess } from '../support/worker.js';

/** In rows of the source. */
const MARKER = 'geheim-91ce';
const ROWS = 20_000;

const REMOTE = `
  CREATE TABLE sales (sold_on date NOT NULL, note text NOT NULL);
  INSERT INTO sales SELECT d, '${MARKER}' FROM generate_series(date '2024-03-01', '2024-03-31', '1 day') d, generate_series(1, 3);
  -- Waits, working, for as long as the test holds the key's lock.
  CREATE FUNCTION held(asked text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    WHILE NOT pg_try_advisory_xact_lock_shared(hashtext(asked)) LOOP PERFORM pg_sleep(0.02); END LOOP;
    RETURN true;
  END $$;
  CREATE FUNCTION writes() RETURNS text LANGUAGE sql VOLATILE AS 'DELETE FROM sales RETURNING note';`;

const pipeline = (target: string, query: string, more = '-- source: SOURCE_URL\n'): string =>
  `-- repave\n-- target: ${target}\n-- partition: { column: day, by: day }\n-- start: 2024-03-01\n${more}${query}\n`;

const SALES = 'SELECT sold_on AS day, note FROM sales WHERE sold_on >= :date AND sold_on < :end_date';
const PIPELINES = {
  relay_sales: pipeline('sales', SALES),
  relay_held: pipeline(
    'held',
    `SELECT :date AS day, g::text AS note FROM generate_series(1, ${ROWS}) g WHERE g <> ${ROWS / 2} OR held(:key)`,
  ),
  relay_unset: pipeline('unset', SALES, '-- source: NOT_SET_URL\n'),
  relay_writes: pipeline('writes', 'SELECT :date AS day, writes() AS note'),
  relay_cast: pipeline('casts', 'SELECT sold_on AS day, note::int::text AS note FROM sales'),
  relay_check: pipeline('checked', SALES),
  here: pipeline('here', `SELECT :date AS day, 'x' AS note`, ''),
} as const;

describe('a pipeline whose query runs on another PostgreSQL', function () {
  this.timeout(300_000);
  let installation: Installation;
  let remote: TestDatabase;
  let proxy: Proxy;
  let locks: pg.Client;
  let worker: WorkerProcess;
  const workers: WorkerProcess[] = [];
  const told: unknown[] = [];

  const startWorker = async (): Promise<WorkerProcess> => {
    const started = await installation.startWorker({
      env: { SOURCE_URL: proxy.url(remote.url), REPAVE_FILLS: '2', REPAVE_SHUTDOWN_GRACE: '0' },
    });
    workers.push(started);
    return started;
  };

  before(async () => {
    const targets = Object.values(PIPELINES).map((text) => /target: (\w+)/.exec(text)?.[1]);
    remote = await createTestDatabase({ ledger: false });
    await remote.sql(REMOTE);
    proxy = await Proxy.before(remote.url);
    locks = new pg.Client({ connectionString: remote.superuserUrl });
    await locks.connect();
    installation = await Installation.open({
      pipelines: Object.fromEntries(Object.entries(PIPELINES).map(([name, text]) => [`${name}.sql`, text])),
      tables: `${targets.map((name) => `CREATE TABLE ${name} (day date NOT NULL, note text);`).join('\n')}
        ALTER TABLE checked ADD CONSTRAINT short CHECK (length(note) < 3);`,
    });
    worker = await startWorker();
  });
  after(async () => {
    await installation.close();
    await proxy.close();
    await locks.end();
    await remote.drop();
  });

  const backfill = (name: keyof typeof PIPELINES, from: string, to = from) =>
    installation.client.backfill({ pipeline: name, from, to });

  /** The type and message of the failure that a backfill of one day ends with. */
  async function failureOf(name: keyof typeof PIPELINES): Promise<{ type: string; message: string }> {
    const handle = await backfill(name, '2024-03-05').catch((error: unknown) => error as BackfillFailed);
    const error =
      handle instanceof Error
        ? handle
        : await handle.result().then(
            () => assert.fail(),
            (e: unknown) => e,
          );
    assert.ok(error instanceof BackfillFailed, String(error));
    told.push(error.message, error.result);
    const [failure] = error.result?.failures ?? [];
    return { type: failure?.type ?? error.type, message: failure?.message ?? error.message };
  }

  const hold = (key: string): Promise<unknown> => locks.query('SELECT pg_advisory_lock(hashtext($1))', [key]);
  const letGo = (key: string): Promise<unknown> => locks.query('SELECT pg_advisory_unlock(hashtext($1))', [key]);

  /** Sessions of fills on the source. */
  async function reading(): Promise<{ pid: number; wait: string | null }[]> {
    const { rows } = await locks.query<{ pid: number; wait: string | null }>(
      `SELECT pid, wait_event AS wait FROM pg_stat_activity
        WHERE datname = current_database() AND application_name ~ '^repave [^/ ]+/' AND state <> 'idle'`,
    );
    return rows;
  }
  const heldReading = (): Promise<unknown> =>
    until('a query that is held', async () => (await reading()).some(({ wait }) => wait === 'PgSleep'));
  const held = (key: string): Promise<Record<string, unknown>[]> =>
    installation.database.sql(
      'SELECT count(*)::int AS rows, count(DISTINCT note)::int AS notes FROM held WHERE day = $1',
      [key],
    );

  it('fills what its own database would', async () => {
    const { filled, rows } = await (await backfill('relay_sales', '2024-03-01', '2024-03-03')).result();
    assert.deepEqual({ filled, rows }, { filled: 3, rows: 9 });
    assert.deepEqual(await installation.database.sql('SELECT day::text, note FROM sales GROUP BY 1, 2 ORDER BY 1'), [
      { day: '2024-03-01', note: MARKER },
      { day: '2024-03-02', note: MARKER },
      { day: '2024-03-03', note: MARKER },
    ]);
  });

  it('is not served where the variable of its source is not set, and says which', async () => {
    const { type, message } = await failureOf('relay_unset');
    assert.equal(type, 'InvalidPipeline');
    assert.match(message, /NOT_SET_URL is not set/);
  });

  it('says what the source has against it', async () => {
    const writes = await failureOf('relay_writes');
    assert.equal(writes.type, 'InvalidPipeline', writes.message);
    assert.match(writes.message, /On the source of relay_writes .*25006.*writes/);
    const cast = await failureOf('relay_cast');
    assert.equal(cast.type, 'DataError', cast.message);
    assert.match(cast.message, /On the source of relay_cast .*22P02/);
    const check = await failureOf('relay_check');
    assert.equal(check.type, 'DataError', check.message);
    assert.match(check.message, /^PostgreSQL answered 23514 .*"short"/);
  });

  it('waits while its source is down, which costs it no try and others nothing', async () => {
    proxy.restart({ onMessage: () => 'cut' });
    const waiting = await backfill('relay_sales', '2024-03-04', '2024-03-06');
    const { temporal } = installation.client;
    const why = await until('a fill that found no source', async () => {
      const description = await temporal.workflow
        .getHandle('relay_sales/2024-03-04')
        .describe()
        .catch(() => undefined);
      const { message, applicationFailureInfo } = description?.raw.pendingActivities?.[0]?.lastFailure ?? {};
      return applicationFailureInfo ? { type: applicationFailureInfo.type, message } : undefined;
    });
    assert.equal(why.type, 'DatabaseUnavailable');
    assert.match(String(why.message), /the source/i);
    told.push(why);
    assert.equal((await (await backfill('here', '2024-03-01', '2024-03-10')).result()).filled, 10);
    proxy.restart({});
    assert.equal((await waiting.result()).filled, 3);
    assert.deepEqual(await installation.database.sql(`SELECT FROM repave.failure WHERE pipeline = 'relay_sales'`), []);
  });

  it('is cancelled with its query, though its worker is frozen', async () => {
    const key = '2024-03-10';
    await hold(key);
    const handle = await backfill('relay_held', key);
    await heldReading();
    const other = await startWorker();
    worker.signal('SIGSTOP');
    await handle.cancel();
    await assert.rejects(handle.result(), (error) => error instanceof BackfillFailed && error.type === 'Cancelled');
    assert.deepEqual(await reading(), []);
    assert.deepEqual(await installation.leftBehind(), []);
    assert.deepEqual(await held(key), [{ rows: 0, notes: 0 }]);
    worker.signal('SIGCONT');
    await worker.kill();
    worker = other;
    await letGo(key);
  });

  it('is filled once by another worker where its own is killed in the middle of the rows', async () => {
    const key = '2024-03-11';
    await hold(key);
    const handle = await backfill('relay_held', key);
    await heldReading();
    const other = await startWorker();
    await worker.kill();
    worker = other;
    assert.deepEqual(await held(key), [{ rows: 0, notes: 0 }]);
    await letGo(key);
    assert.equal((await handle.result()).rows, ROWS);
    assert.deepEqual(await held(key), [{ rows: ROWS, notes: ROWS }]);
    assert.equal((await installation.database.sql('SELECT FROM repave.fill WHERE key = $1', [key])).length, 1);
    await until('the killed worker’s query to be gone', async () => (await reading()).length === 0);
  });

  it('lets nothing of either URL and no value out', async () => {
    const histories: unknown[] = [];
    for await (const { workflowId, runId } of installation.temporal.workflow.list({
      query: `TaskQueue = '${installation.taskQueue}'`,
    })) {
      histories.push(await installation.temporal.workflow.getHandle(workflowId, runId).fetchHistory());
    }
    assert.ok(histories.length > 5);
    const tables = await installation.database.sql<{ name: string }>(
      `SELECT format('repave.%I', relname) AS name FROM pg_class WHERE relnamespace = 'repave'::regnamespace AND relkind = 'r'`,
    );
    const ledger = await Promise.all(
      tables.map(({ name }) => installation.database.sql(`SELECT to_jsonb(t)::text AS row FROM ${name} t`)),
    );
    const logs = workers.map((each) => each.log()).join('\n');
    assert.match(logs, /relay_unset/);
    const places = { histories: readable(histories), ledger: JSON.stringify(ledger), logs, told: JSON.stringify(told) };
    for (const [place, text] of Object.entries(places)) {
      for (const secret of [
        MARKER,
        new URL(remote.url).password,
        new URL(installation.database.url).password,
        '://test_',
      ]) {
        const at = text.indexOf(secret);
        assert.ok(at < 0, `${place} hold a secret: …${text.slice(Math.max(0, at - 200), at + 20)}…`);
      }
    }
  });
});

/** A history as text, its payloads decoded: as JSON they are base64. */
function readable(value: unknown): string {
  return JSON.stringify(value, (name, field: unknown) =>
    name === 'data' && typeof field === 'string' ? Buffer.from(field, 'base64').toString('utf8') : field,
  );
}
