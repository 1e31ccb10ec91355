import { randomBytes } from 'node:crypto';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { withClient } from './template.js';
import { testTemporal } from './temporal.js';
import { createProject, startWorker, type WorkerOptions, type WorkerProcess } from './worker.js';
import { uniqueQueue } from './workflow.js';

/** Three sales a day from January to April 2024, and fills that wait for as long as the table `hold` names their key. */
const TABLES = `
CREATE TABLE sales (sold_on date NOT NULL, quantity int NOT NULL);
INSERT INTO sales SELECT d::date, 1 FROM generate_series(date '2024-01-01', date '2024-04-30', interval '1 day') d, generate_series(1, 3);
CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL);
CREATE TABLE hold (key text NOT NULL);
CREATE FUNCTION held(which text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  WHILE EXISTS (SELECT FROM public.hold WHERE key = which) LOOP PERFORM pg_sleep(0.05); END LOOP;
  RETURN 0;
END $$;`;

/** A pipeline from `sales` to `daily`. */
export const DAILY = `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- start: 2024-01-01
SELECT :date AS day, (SELECT count(*) FROM sales WHERE sold_on = :date) + held(:key) AS n
`;

/** A database with tables, a project with the pipeline, a task queue and a client: all of a test's own. */
export interface Bed {
  readonly database: TestDatabase;
  readonly project: string;
  /** The pipeline's name: of this bed alone, since ids of workflows hold it. */
  readonly pipeline: string;
  readonly taskQueue: string;
  readonly client: RepaveClient;
  /** Starts a worker, which is ended with the bed. */
  worker(options?: Partial<WorkerOptions>): Promise<WorkerProcess>;
  /** Makes fills of these keys wait until they are let go. */
  hold(...keys: string[]): Promise<void>;
  letGo(...keys: string[]): Promise<void>;
  /** Sessions of a run in the database, by their application_name, and the locks they hold. */
  sessionsOf(run: string): Promise<{ state: string; locks: number }[]>;
  close(): Promise<void>;
}

export async function makeBed(
  options: {
    readonly pipeline?: string;
    /** Of the pipeline's file. Default `sql`. */
    readonly extension?: 'sql' | 'ts';
    readonly files?: Readonly<Record<string, string>>;
  } = {},
): Promise<Bed> {
  const database = await createTestDatabase();
  await database.sql(TABLES);
  const pipeline = `daily_${randomBytes(6).toString('hex')}`;
  const project = await createProject({
    [`${pipeline}.${options.extension ?? 'sql'}`]: options.pipeline ?? DAILY,
    ...options.files,
  });
  const taskQueue = uniqueQueue();
  const client = await connectRepave({
    settings: loadSettings(onlyThisServer((await testTemporal()).address)),
    taskQueue,
  });
  const workers: WorkerProcess[] = [];
  return {
    database,
    project,
    pipeline,
    taskQueue,
    client,
    worker: async (more = {}) => {
      const worker = await startWorker({ databaseUrl: database.url, taskQueue, project, ...more });
      workers.push(worker);
      return worker;
    },
    hold: async (...keys) => void (await database.sql('INSERT INTO hold SELECT unnest($1::text[])', [keys])),
    letGo: async (...keys) => void (await database.sql('DELETE FROM hold WHERE key = ANY ($1)', [keys])),
    // As superuser: the worker's sessions show nothing of themselves to others.
    sessionsOf: (run) =>
      withClient(database.superuserUrl, async (superuser) => {
        const { rows } = await superuser.query<{ state: string; locks: number }>(
          `SELECT state, (SELECT count(*)::int FROM pg_locks l WHERE l.pid = a.pid) AS locks
             FROM pg_stat_activity a WHERE datname = current_database() AND application_name LIKE 'repave ' || $1 || '%'`,
          [run],
        );
        return rows;
      }),
    close: async () => {
      await Promise.all(workers.map((worker) => worker.kill()));
      await client.close();
      await database.drop();
    },
  };
}
