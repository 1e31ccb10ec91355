import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { isGrpcServiceError } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import pg from 'pg';
import { windowOf } from '../../src/calendar/window.js';
import { BackfillFailed, type BackfillHandle, type RepaveClient } from '../../src/client.js';
import type { BackfillInput, BackfillResult, OnBusy } from '../../src/contract.js';
import { windowLock } from '../../src/warehouse/lock.js';
import { Installation } from '../chaos/installation.js';
import type { WorkerProcess } from '../support/worker.js';
import { until } from '../chaos/until.js';

/** What Temporal's server answers about a run that is not there. */
const NOT_FOUND = 5;
/** Rows that each fill writes. */
export const ROWS = 3;

const query = (settings: string): string => `-- repave
-- target: target
-- partition: { column: day, by: day }
${settings}
SELECT :date AS day, number FROM held(:key) CROSS JOIN generate_series(1, ${ROWS}) AS number
`;

/** How a backfill has ended. */
export type Counts = Pick<BackfillResult, 'filled' | 'skipped' | 'failed'>;

/** How a backfill of `total` partitions is to end that has met another run at one of them. */
export function metOnce(total: number, onBusy: OnBusy): Counts {
  return {
    filled: onBusy === 'wait' ? total : total - 1,
    skipped: onBusy === 'skip' ? 1 : 0,
    failed: onBusy === 'fail' ? 1 : 0,
  };
}

/** A database, a worker and one pipeline, whose fills may be held one by one, for runs that meet at its partitions. */
export class Pairing {
  private constructor(
    readonly installation: Installation,
    readonly pipeline: string,
    readonly worker: WorkerProcess,
  ) {}

  /** `settings`: further lines of the pipeline's header. */
  static async open(settings = '-- start: 2024-01-01'): Promise<Pairing> {
    const pipeline = `pairing_${randomBytes(6).toString('hex')}`;
    const installation = await Installation.open({
      pipelines: { [`${pipeline}.sql`]: query(settings) },
      tables: 'CREATE TABLE target (day date NOT NULL, number int NOT NULL, UNIQUE (day, number));',
    });
    return new Pairing(installation, pipeline, await installation.startWorker());
  }

  get client(): RepaveClient {
    return this.installation.client;
  }

  /** Starts a backfill under an id of its own. */
  async backfill(name: string, input: Omit<BackfillInput, 'pipeline'>): Promise<BackfillHandle> {
    const id = `backfill/${this.pipeline}/${name}/${randomBytes(3).toString('hex')}`;
    return this.client.backfill({ pipeline: this.pipeline, ...input }, { id });
  }

  /** Starts a partition alone, as other systems may, under an id of theirs. */
  async alone(key: string, onBusy: BackfillInput['onBusy']) {
    return this.installation.temporal.workflow.start('partition', {
      workflowId: `alone/${this.pipeline}/${key}/${randomBytes(3).toString('hex')}`,
      taskQueue: this.installation.taskQueue,
      args: [{ pipeline: this.pipeline, key, onBusy }],
    });
  }

  async hold(...keys: string[]): Promise<void> {
    for (const key of keys) await this.installation.hold(key);
  }

  async letGo(...keys: string[]): Promise<void> {
    for (const key of keys) await this.installation.release(key);
  }

  /** Waits until just these partitions are being filled, and held, and returns the runs that do. */
  async filling(...keys: string[]): Promise<string[]> {
    return until(`${keys.join(', ')} to be filled`, async () => {
      // Not those that have a claim and wait for a window's lock.
      const held = (await this.installation.openFills()).filter(({ wait }) => wait === 'PgSleep');
      return String(held.map(({ key }) => key)) === String([...keys].sort()) && held.map(({ run }) => run);
    });
  }

  /** Waits until a backfill waits for other runs. */
  async awaiting({ id }: { readonly id: string }): Promise<void> {
    await until(`${id} to wait for other runs`, async () => {
      const { raw } = await this.installation.temporal.workflow.getHandle(id).describe();
      return raw.pendingActivities?.some(({ activityType, lastStartedTime }) => {
        return (activityType?.name ?? '').startsWith('awaitPartition') && lastStartedTime;
      });
    });
  }

  /** Waits until a run waits for the lock of a window that another session has. */
  async awaitingLock(): Promise<void> {
    await until('a fill to wait for a lock', async () => {
      return (await this.installation.waitingForLocks()) > 0;
    });
  }

  /** Waits until a partition's run is to be tried again for this reason: a busy machine may cost it a try for another one. */
  async triedAgain(workflowId: string, why: RegExp): Promise<void> {
    await until(`${workflowId} to be tried again, since ${String(why)}`, async () => {
      try {
        const { raw } = await this.installation.temporal.workflow.getHandle(workflowId).describe();
        return why.test(raw.pendingActivities?.[0]?.lastFailure?.message ?? '');
      } catch (error) {
        // A child that its backfill has not started yet.
        if (error instanceof WorkflowNotFoundError) return undefined;
        throw error;
      }
    });
  }

  /** Runs `use` while a person's session holds the window of a partition. */
  async whileLocked(key: string, use: (person: pg.Client) => Promise<void>): Promise<void> {
    const { database } = this.installation;
    const [target] = await database.sql<{ oid: number }>(`SELECT 'target'::regclass::oid::int AS oid`);
    const { space, window } = windowLock({ root: target?.oid ?? 0 }, windowOf({ by: 'day', zone: 'UTC' }, key));
    const person = new pg.Client({ connectionString: database.url, application_name: 'psql' });
    // The end of the database may end it first.
    person.on('error', () => undefined);
    await person.connect();
    try {
      await person.query('BEGIN');
      await person.query('SELECT pg_advisory_xact_lock($1::int, $2::int)', [space, window]);
      await use(person);
    } finally {
      await person.end();
    }
  }

  /** How a backfill ends, in counts, with its failures. */
  async ended(backfill: BackfillHandle): Promise<Counts & Pick<BackfillResult, 'failures'>> {
    const result = await backfill.result().catch((error: unknown) => {
      if (error instanceof BackfillFailed && error.result) return error.result;
      throw error;
    });
    const { filled, skipped, failed, failures } = result;
    return { filled, skipped, failed, failures };
  }

  /**
   * Asserts what holds however runs have met: each partition has its rows once, as many fills as given, each by a run of its
   * own, and is filled by the ledger; nothing is claimed, locked or open any more; no workflow had a task that failed.
   */
  async isWhole(fills: Readonly<Record<string, number>>, runs: readonly { readonly id: string }[]): Promise<void> {
    const { installation, pipeline } = this;
    const keys = Object.keys(fills);
    const rows = await installation.look<{ key: string; rows: number; fills: number; runs: number; outcome: string }>(
      `SELECT k.key, (SELECT count(*)::int FROM target WHERE day::text = k.key) AS rows, p.outcome,
              (SELECT count(*)::int FROM repave.fill f WHERE f.key = k.key) AS fills,
              (SELECT count(DISTINCT run)::int FROM repave.fill f WHERE f.key = k.key) AS runs
         FROM unnest($1::text[]) WITH ORDINALITY AS k (key, place) LEFT JOIN repave.partition p ON p.key = k.key ORDER BY place`,
      [keys],
    );
    assert.deepEqual(
      rows,
      keys.map((key) => ({ key, rows: ROWS, outcome: 'filled', fills: fills[key], runs: fills[key] })),
    );
    assert.deepEqual(await installation.look('SELECT key, run FROM repave.claim WHERE NOT closed'), []);
    assert.deepEqual(await installation.leftBehind(), []);
    const filled = await installation.look<{ key: string; run: string }>('SELECT key, run FROM repave.fill');
    const children = filled.map(({ key, run }) => ({ id: `${pipeline}/${key}`, run }));
    for (const { id, run } of [...runs.map(({ id }) => ({ id, run: undefined })), ...children]) {
      const failed = await this.#failedTasks(id, run);
      // Fills of a batch, and of a run under somebody's own id, have another workflow's run: `runs` names those.
      assert.ok(failed === 0 || (failed === undefined && run), `${id} has ${failed} failed workflow tasks`);
    }
  }

  /** How many workflow tasks of a run have failed; undefined where there is no such run. */
  async #failedTasks(id: string, run?: string): Promise<number | undefined> {
    try {
      const { events } = await this.installation.temporal.workflow.getHandle(id, run).fetchHistory();
      return events?.filter((event) => event.workflowTaskFailedEventAttributes).length;
    } catch (error) {
      if (isGrpcServiceError(error) && Number(error.code) === NOT_FOUND) return undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.installation.close();
  }
}

/** Days from one on, as keys. */
export function days(first: string, count: number): string[] {
  const start = Date.parse(`${first}T00:00:00Z`);
  return Array.from({ length: count }, (_, i) => new Date(start + i * 86_400_000).toISOString().slice(0, 10));
}
