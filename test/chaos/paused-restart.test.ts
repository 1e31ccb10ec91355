import assert from 'node:assert/strict';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import { WORKFLOW_TYPES, type BackfillResult, type Progress, type Steered } from '../../src/contract.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import type { PostgresServer } from '../../src/dev/postgres.js';
import type { TemporalServer } from '../../src/dev/temporal-server.js';
import { loadSettings } from '../../src/settings.js';
import { startPrivatePostgres } from '../support/database.js';
import { createPrivateDatabase, type PrivateDatabase } from '../support/private-database.js';
import { startPrivateTemporal } from '../support/temporal.js';
import { createProject, startWorker, type WorkerProcess } from '../support/worker.js';
import { uniqueQueue } from '../support/workflow.js';
import { until } from './until.js';

const DAYS = 30;
const LANES = 3;
/** From here on days are filled only once the brake is let go: until it is, a third of them is. */
const BRAKED = '2024-01-11';

/** Three rows a day. */
const PIPELINE = `-- repave
-- target: daily
-- partition: { column: day, by: day }
SELECT :date AS day, n FROM held(:key), generate_series(1, 3) AS n
`;
const TABLES = `
  CREATE TABLE daily (day date NOT NULL, n int NOT NULL);
  CREATE TABLE brake AS SELECT date '${BRAKED}' AS first;
  CREATE FUNCTION held(asked text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    WHILE EXISTS (SELECT FROM brake WHERE first <= asked::date) LOOP PERFORM pg_sleep(0.02); END LOOP;
    RETURN true;
  END $$;`;

describe('a paused backfill over a restart of everything', function () {
  this.timeout(600_000);
  const id = 'backfill/paused-restart';
  const taskQueue = uniqueQueue();
  let postgres: PostgresServer;
  let database: PrivateDatabase;
  let temporal: TemporalServer;
  let worker: WorkerProcess | undefined;
  let client: RepaveClient;
  let project: string;

  before(async () => {
    [postgres, temporal, project] = await Promise.all([
      startPrivatePostgres(),
      startPrivateTemporal(),
      createProject({ 'daily.sql': PIPELINE }),
    ]);
    database = await createPrivateDatabase(postgres);
    await database.sql(TABLES);
    await open();
  });
  after(async () => {
    await worker?.kill();
    await client.close();
    await Promise.all([postgres.stop('immediate'), temporal.kill()]);
  });

  it('starts nothing while it is paused, goes on where it was, and fills nothing twice', async () => {
    await client.temporal.workflow.start(WORKFLOW_TYPES.backfill, {
      workflowId: id,
      taskQueue,
      args: [{ pipeline: 'daily', from: '2024-01-01', to: '2024-01-30', concurrency: LANES }],
    });
    await until('a third of the days', async () => (await filled()) === DAYS / 3);
    await lever('pause', { reason: 'the disk is replaced' });

    await Promise.all([worker?.kill(), temporal.kill(), postgres.stop('immediate'), client.close()]);
    postgres = await startPrivatePostgres({ dir: postgres.dir, port: postgres.port });
    database = database.on(postgres);
    temporal = await startPrivateTemporal({ dir: dirOf(temporal) });
    await open();

    await database.sql('DELETE FROM brake');
    const still = await until('the open fills to end', async () => {
      const now = await progress();
      return now?.running.length === 0 && now;
    });
    assert.equal(still.phase, 'paused');
    assert.deepEqual([still.paused?.by, still.paused?.reason], ['lever', 'the disk is replaced']);
    assert.equal(still.filled, await filled());
    assert.ok(still.filled < DAYS);

    await lever('resume', {});
    const { total, filled: all, failed, rows } = (await handle().result()) as BackfillResult;
    assert.deepEqual([total, all, failed, rows], [DAYS, DAYS, 0, DAYS * 3]);
    assert.deepEqual(
      await database.sql(`SELECT count(*)::int AS fills, count(DISTINCT key)::int AS keys,
                                 sum(rows_inserted)::int AS rows, (SELECT count(*)::int FROM daily) AS there FROM repave.fill`),
      [{ fills: DAYS, keys: DAYS, rows: DAYS * 3, there: DAYS * 3 }],
    );
    assert.equal(await startedWhilePaused(), 0);
  });

  /** A client and a worker on the servers as they are now. */
  async function open(): Promise<void> {
    client = await connectRepave({ settings: loadSettings(onlyThisServer(temporal.address)), taskQueue });
    worker = await startWorker({
      databaseUrl: database.url,
      taskQueue,
      project,
      temporalAddress: temporal.address,
    });
  }

  const handle = () => client.temporal.workflow.getHandle(id);

  async function lever(name: string, input: object): Promise<Steered> {
    return handle().executeUpdate<Steered, [object]>(name, { args: [input] });
  }

  const progress = () =>
    handle()
      .query<Progress>('progress')
      // A server that has just come up may not know yet who polls.
      .catch(() => undefined);

  async function filled(): Promise<number> {
    const [row] = await database.sql<{ n: number }>('SELECT count(*)::int AS n FROM repave.fill');
    return row?.n ?? 0;
  }

  /** Children that the history has between the pause and the end of it. */
  async function startedWhilePaused(): Promise<number> {
    const { events } = await handle().fetchHistory();
    const accepted = (name: string): number =>
      (events ?? []).findIndex(
        ({ workflowExecutionUpdateAcceptedEventAttributes: update }) => update?.acceptedRequest?.input?.name === name,
      );
    const [from, to] = [accepted('pause'), accepted('resume')];
    assert.ok(from > 0 && to > from);
    return (events ?? []).slice(from, to).filter((event) => event.startChildWorkflowExecutionInitiatedEventAttributes)
      .length;
  }
});

/** The folder of a server's state, which its log is in. */
function dirOf({ logFile }: TemporalServer): string {
  return logFile.slice(0, logFile.lastIndexOf('/'));
}
