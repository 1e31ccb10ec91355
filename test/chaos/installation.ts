import { hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import pg from 'pg';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { testTemporal } from '../support/temporal.js';
import { createProject, startWorker, type WorkerOptions, type WorkerProcess } from '../support/worker.js';
import { uniqueQueue } from '../support/workflow.js';
import { until } from './until.js';

/** A fill that is between its BEGIN and its COMMIT, as the server sees it. */
export interface OpenFill {
  readonly pipeline: string;
  readonly key: string;
  /** The run of the partition's workflow. */
  readonly run: string;
  readonly fence: number;
  /** Of the backend. */
  readonly pid: number;
  readonly state: string;
  /** What the backend waits for: `PgSleep` while {@link Installation.hold} stops it, `ClientRead` for its worker. */
  readonly wait: string | null;
}

export interface InstallationOptions {
  /** Files of `pipelines/` by their name. */
  readonly pipelines: Readonly<Record<string, string>>;
  /** Runs as the tables' owner. */
  readonly tables?: string;
  /** Default: one that nobody else uses. */
  readonly taskQueue?: string;
  readonly namespace?: string;
}

/**
 * What a pipeline's query calls as `CROSS JOIN held(:key)` to wait, between its DELETE and its COMMIT, for as long as the
 * test holds that key. It sleeps and holds no lock.
 */
const HELD = `
  CREATE TABLE brake (key text PRIMARY KEY);
  CREATE FUNCTION held(asked text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    LOOP
      PERFORM FROM brake WHERE key IN (asked, '*');
      IF NOT FOUND THEN RETURN true; END IF;
      PERFORM pg_sleep(0.02);
    END LOOP;
  END $$;`;

/** A database, a project, a task queue and real workers of one test's own, on the run's servers. */
export class Installation {
  readonly #workers: WorkerProcess[] = [];
  readonly #superuser: pg.Pool;

  private constructor(
    readonly database: TestDatabase,
    readonly project: string,
    readonly client: RepaveClient,
    readonly namespace: string,
  ) {
    this.#superuser = new pg.Pool({ connectionString: database.superuserUrl, max: 2 });
    this.#superuser.on('error', () => undefined);
  }

  static async open(options: InstallationOptions): Promise<Installation> {
    const database = await createTestDatabase();
    await database.sql(`${HELD} ${options.tables ?? ''}`);
    const { address } = await testTemporal();
    const namespace = options.namespace ?? 'default';
    const client = await connectRepave({
      settings: loadSettings(onlyThisServer(address)),
      namespace,
      taskQueue: options.taskQueue ?? uniqueQueue(),
    });
    return new Installation(database, await createProject(options.pipelines), client, namespace);
  }

  get taskQueue(): string {
    return this.client.taskQueue;
  }

  get temporal(): Client {
    return this.client.temporal;
  }

  /** Starts another worker of this installation. */
  async startWorker(options: Partial<WorkerOptions> = {}): Promise<WorkerProcess> {
    const { taskQueue, project, namespace } = this;
    const worker = await startWorker({
      databaseUrl: this.database.url,
      taskQueue,
      project,
      ...options,
      env: { TEMPORAL_NAMESPACE: namespace, ...options.env },
    });
    this.#workers.push(worker);
    return worker;
  }

  /** From here on fills whose query asks for the key, or all of them, wait in it. */
  async hold(key = '*'): Promise<void> {
    await this.database.sql('INSERT INTO brake VALUES ($1)', [key]);
  }

  async release(key = '*'): Promise<void> {
    await this.database.sql('DELETE FROM brake WHERE key = $1', [key]);
  }

  /** The fills that are open now, on whichever worker. */
  async openFills(): Promise<OpenFill[]> {
    return this.look<OpenFill>(`
      SELECT c.pipeline, c.key, c.run, c.fence::float8 AS fence, a.pid, a.state, a.wait_event AS wait
        FROM pg_stat_activity a, regexp_match(a.application_name, '^repave ([^/ ]+)/[^ ]+ ([0-9]+)$') AS m
        JOIN repave.claim c ON c.run = m[1] AND c.fence = m[2]::bigint
       WHERE a.datname = current_database() AND a.xact_start IS NOT NULL
       ORDER BY c.pipeline, c.key`);
  }

  /** Waits until this many fills, of all or of one pipeline, are held, and returns them. */
  async heldFills(count = 1, pipeline?: string): Promise<OpenFill[]> {
    return until(`${count} held fills`, async () => {
      const open = await this.openFills();
      const held = open.filter((fill) => fill.wait === 'PgSleep' && (!pipeline || fill.pipeline === pipeline));
      return held.length >= count && held;
    });
  }

  /** How many sessions wait for a lock of Repave's: in this database, for the server is shared with other tests. */
  async waitingForLocks(): Promise<number> {
    const waiting = await this.look(
      `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    return waiting.length;
  }

  /** Sessions of workers that are in a transaction or hold a lock of Repave's, whatever they are called. */
  async leftBehind(): Promise<unknown[]> {
    return this.look(`
      SELECT pid, application_name, state, query FROM pg_stat_activity
       WHERE datname = current_database() AND usename = '${this.database.workerRole}'
         AND (xact_start IS NOT NULL OR pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory'))
      UNION ALL
      SELECT pid, 'a lock', mode, '' FROM pg_locks
       WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);
  }

  /** Runs SQL as a superuser, who sees what every session does. */
  async look<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.#superuser.query<Row>(text, [...values])).rows;
  }

  /** The worker that has the newest attempt of a partition's workflow, as Temporal knows it; undefined where none has. */
  async workerOf(workflowId: string, runId?: string): Promise<WorkerProcess | undefined> {
    const { raw } = await this.temporal.workflow.getHandle(workflowId, runId).describe();
    const [activity] = raw.pendingActivities ?? [];
    if (activity?.activityType?.name !== 'fillPartition') return undefined;
    return this.#workers.find(({ pid }) => activity.lastWorkerIdentity === `${pid}@${hostname()}`);
  }

  /** Ends the workers and the database. */
  async close(): Promise<void> {
    await Promise.all(
      this.#workers.map((worker) => {
        worker.signal('SIGCONT');
        return worker.kill();
      }),
    );
    await this.client.close();
    await this.#superuser.end();
    await this.database.drop();
  }
}
