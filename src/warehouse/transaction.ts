import type { Database } from './database.js';
import { pinnedPath } from './role-defaults.js';
import type { Backend, Session } from './session.js';

export interface Pins {
  readonly applicationName: string;
  /** The pipeline's zone: `ts::date` in its query is then the local date. */
  readonly zone: string;
  readonly lockTimeoutMs: number;
  /** Milliseconds one statement may take: a backstop behind the worker's own deadline. */
  readonly statementTimeoutMs: number;
  /**
   * True: one snapshot for all its statements, and the server refuses to write. `each statement`: it refuses too, and each has a
   * snapshot of its own.
   */
  readonly readOnly?: boolean | 'each statement';
  /**
   * With `readOnly`: a table's quoted name, by its schema, that is locked before the snapshot is taken, so that no DDL commits
   * between the two. Fails with SQLSTATE 55P03 rather than wait: the backend is not known by then.
   */
  readonly locked?: string;
  /** Milliseconds the server lets it stand idle. Default: a minute. */
  readonly idleTimeoutMs?: number;
}

/** Milliseconds the server lets our transaction stand idle: between our statements there is nothing to wait for. */
export const IDLE_TIMEOUT_MS = 60_000;

/**
 * Begins a transaction in which nothing that the role, the database or an earlier user of the connection has set can change
 * what a statement means or how durable it is. All of it is gone at its end, so a pooler may hand the connection on.
 */
export async function begin(session: Session, database: Database, pins: Pins): Promise<void> {
  await session.query(
    pins.readOnly === true
      ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
      : `BEGIN ISOLATION LEVEL READ COMMITTED READ ${pins.readOnly ? 'ONLY' : 'WRITE'}`,
  );
  // Takes no snapshot, as hardly another statement does: https://www.postgresql.org/docs/current/sql-lock.html
  if (pins.locked !== undefined) await session.query(`LOCK TABLE ${pins.locked} IN ACCESS SHARE MODE NOWAIT`);
  const settings: readonly (readonly [name: string, value: string])[] = [
    ['application_name', pins.applicationName],
    ['search_path', pinnedPath(database.searchPath)],
    ['TimeZone', pins.zone],
    ['DateStyle', 'ISO, YMD'],
    ['IntervalStyle', 'postgres'],
    ['bytea_output', 'hex'],
    ['extra_float_digits', '1'],
    ['standard_conforming_strings', 'on'],
    ['transform_null_equals', 'off'],
    ['array_nulls', 'on'],
    // Else one table would have two names in the ledger.
    ['quote_all_identifiers', 'off'],
    // Fails where a policy would hide rows, instead of filling around them.
    ['row_security', 'off'],
    ['lock_timeout', String(pins.lockTimeoutMs)],
    ['statement_timeout', String(Math.max(1, Math.ceil(pins.statementTimeoutMs)))],
    ['idle_in_transaction_session_timeout', String(Math.ceil(pins.idleTimeoutMs ?? IDLE_TIMEOUT_MS))],
    ...(database.serverVersion >= 170_000 ? [['transaction_timeout', '0'] as const] : []),
    ...(database.checksClients ? [['client_connection_check_interval', '5s'] as const] : []),
  ];
  const calls = settings.map((_, i) => `pg_catalog.set_config($${2 * i + 1}, $${2 * i + 2}, true)`);
  const [backend] = await session.rows<{ pid: number; started: string }>(
    `SELECT me.pid, me.backend_start::pg_catalog.text AS started
       FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) me,
            (SELECT ${calls.join(', ')},
                    -- 'local' would not wait for a synchronous standby; what waits for one stays.
                    CASE WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local')
                         THEN pg_catalog.set_config('synchronous_commit', 'on', true) END) pinned`,
    settings.flat(),
  );
  if (!backend) throw new Error('Connection terminated: the backend does not see itself');
  session.backend = {
    pid: backend.pid,
    startedAt: backend.started,
    applicationName: pins.applicationName,
  } satisfies Backend;
}

/** Names the transaction that has begun, and learns its backend: from here on a long statement is told from a dead connection. */
export async function identify(session: Session, applicationName: string): Promise<void> {
  const [backend] = await session.rows<{ pid: number; started: string }>(
    `SELECT me.pid, me.backend_start::pg_catalog.text AS started
       FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) me,
            (SELECT pg_catalog.set_config('application_name', $1, true)) named`,
    [applicationName],
  );
  if (!backend) throw new Error('Connection terminated: the backend does not see itself');
  session.backend = { pid: backend.pid, startedAt: backend.started, applicationName };
}

/** Runs one statement of our own in autocommit; where the role's defaults could change what it does, in a pinned transaction. */
export async function alone<T>(session: Session, database: Database, statement: () => Promise<T>): Promise<T> {
  if (database.beginAlone === undefined) return statement();
  await session.query(database.beginAlone);
  const result = await statement();
  await commit(session);
  return result;
}

/** Commits. True only where the server says so: an aborted transaction answers ROLLBACK, and no error. */
export async function commit(session: Session): Promise<boolean> {
  const result = await session.query('COMMIT');
  return result.command === 'COMMIT';
}
