import type { Window } from '../calendar/calendar.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { sqlstate, toFailure } from './errors.js';
import { ALL_TIME, countWindows, oldestRow, rowsOutside } from './count-windows.js';
import { takeGridShared } from './lock.js';
import type { Session } from './session.js';
import { otherGrid, registeredFingerprint } from './registered-grid.js';
import { readTarget, type Target } from './target.js';
import { begin, commit } from './transaction.js';
import { withSession } from './with-session.js';

export interface AdoptionRequest {
  readonly pipeline: Pipeline;
  /** By which the rows count as filled: that of the pipeline as it is registered. */
  readonly fingerprint: string;
  /** Neighbours in the calendar's order, each one's end the next one's start. At least one. */
  readonly windows: readonly Window[];
  /** Names the adoption in the ledger, as a run's id names its fills. */
  readonly run: string;
  /** Who adopts. */
  readonly startedBy: string;
  /** Take in windows that hold no row. */
  readonly empty: boolean;
  /** Count, and record nothing. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/** What an adoption has come to. */
export interface Adoption {
  /** Keys that were recorded as filled, in the calendar's order. */
  readonly keys: readonly string[];
  /** Rows that they hold. */
  readonly rows: number;
  /** Windows left out since they hold no row. */
  readonly empty: number;
  /** Windows left out since the ledger knows them already: filled, failed, or found without their rows, which still are not there. */
  readonly known: number;
}

/** The oldest instant of the pipeline's rows in its target: see {@link oldestRow}. Throws what `readTarget` throws. */
export async function oldestInstant(
  database: Database,
  pipeline: Pipeline,
  signal: AbortSignal,
): Promise<string | undefined> {
  return look(database, pipeline, signal, (session, target) => oldestRow(session, pipeline, target));
}

/**
 * How many of the pipeline's rows lie outside the windows from one to another, both included, or have no date; without
 * windows, outside the years that have keys. Throws what `readTarget` throws.
 */
export async function countOutside(
  database: Database,
  pipeline: Pipeline,
  windows: readonly [first: Window, last: Window] | undefined,
  signal: AbortSignal,
): Promise<number> {
  const [first, last] = windows ?? [ALL_TIME, ALL_TIME];
  return look(database, pipeline, signal, (session, target) => rowsOutside(session, pipeline, target, first, last));
}

async function look<T>(
  database: Database,
  pipeline: Pipeline,
  signal: AbortSignal,
  at: (session: Session, target: Target) => Promise<T>,
): Promise<T> {
  try {
    return await withSession(database, signal, async (session) => {
      await beginAdoption(session, database, pipeline);
      const seen = await at(session, await readTarget(session, pipeline));
      await commit(session);
      return seen;
    });
  } catch (error) {
    signal.throwIfAborted();
    throw toFailure(error);
  }
}

async function beginAdoption(session: Session, database: Database, pipeline: Pipeline): Promise<void> {
  await begin(session, database, {
    applicationName: 'repave adopt',
    zone: pipeline.partition.zone,
    lockTimeoutMs: GRID_WAIT_MS,
    statementTimeoutMs: pipeline.timeoutMs,
  });
}

/** Milliseconds to wait while the target's grid changes. */
const GRID_WAIT_MS = 30_000;

/**
 * Records the rows that stand in some windows as filled: counted in one pass, in one transaction, and no row of the target
 * is touched. Windows that the ledger knows already stay as it has them, but for one that `verify` has found without rows and
 * that has some again. Fills of the target go on meanwhile: one that
 * commits before this keeps its entry, and one that commits after it replaces the entry, whichever rows were counted.
 *
 * Throws what the server says as a `Failure`; rejects with `request.signal.reason` once that is aborted.
 */
export async function adoptWindows(database: Database, request: AdoptionRequest): Promise<Adoption> {
  const { pipeline, signal } = request;
  try {
    return await withSession(database, signal, async (session) => {
      const started = performance.now();
      await beginAdoption(session, database, pipeline);
      const target = await readTarget(session, pipeline);
      // As a fill does: what the windows mean cannot change meanwhile.
      await takeGridShared(session, target);
      const registered = await registeredFingerprint(session, pipeline, target);
      if (registered === undefined && !request.dryRun) throw otherGrid(pipeline);
      const counts = await countWindows(session, pipeline, target, request.windows);
      const found = request.windows.map((window, i) => ({ window, rows: counts[i] ?? 0 }));
      const wanted = found.filter(({ rows }) => request.empty || rows > 0);
      const seconds = (performance.now() - started) / 1000 / request.windows.length;
      const adopted = new Set(wanted.length > 0 ? await record(session, request, wanted, seconds) : []);
      if (request.dryRun) await session.rollback();
      else await commit(session);
      const kept = wanted.filter(({ window }) => adopted.has(window.key));
      return {
        keys: kept.map(({ window }) => window.key),
        rows: kept.reduce((sum, { rows }) => sum + rows, 0),
        empty: found.length - wanted.length,
        known: wanted.length - kept.length,
      };
    });
  } catch (error) {
    signal.throwIfAborted();
    if (sqlstate(error) !== '55P03') throw toFailure(error);
    throw new Failure('Conflict', `The grid of ${pipeline.name} is being changed, or its table is locked. Try again.`);
  }
}

interface CountedWindow {
  readonly window: Window;
  readonly rows: number;
}

/** Writes the entries of the windows that the ledger does not know, and returns their keys. */
async function record(
  session: Session,
  { pipeline: { name }, fingerprint, run, startedBy }: AdoptionRequest,
  windows: readonly CountedWindow[],
  seconds: number,
): Promise<string[]> {
  const claim = [name, windows[0]?.window.key, run];
  // A claim gives the fence, which grows from one to the next whoever makes it; it goes again in the same transaction.
  const [claimed] = await session.rows<{ fence: string }>(
    `INSERT INTO repave.claim (pipeline, key, run, scheduled_at, attempt, deadline)
     VALUES ($1, $2, $3, 0, 1, pg_catalog.clock_timestamp()) RETURNING fence::pg_catalog.text AS fence`,
    claim,
  );
  await session.query('DELETE FROM repave.claim WHERE pipeline = $1 AND key = $2 AND run = $3', claim);
  const adopted = await session.rows<{ key: string }>(
    // A fill that has not committed yet is waited for, and one that has is left alone.
    `WITH given AS MATERIALIZED (
       SELECT *, pg_catalog.statement_timestamp() AS filled_at
         FROM ROWS FROM (pg_catalog.unnest($5::pg_catalog.text[]), pg_catalog.unnest($6::pg_catalog.timestamptz[]),
                         pg_catalog.unnest($7::pg_catalog.timestamptz[]), pg_catalog.unnest($8::pg_catalog.int8[])) AS given(key, window_start, window_end, rows)
     ), partition AS (
       INSERT INTO repave.partition AS p (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
       SELECT $1, key, 'filled', rows, $2, filled_at, $3, 1, $4::pg_catalog.int8 FROM given
       -- One that was filled and then found without rows is missing, until there are rows again.
       ON CONFLICT (pipeline, key) DO UPDATE
          SET rows = excluded.rows, fingerprint = excluded.fingerprint, filled_at = excluded.filled_at,
              run = excluded.run, attempt = excluded.attempt, fence = excluded.fence,
              -- Whether they are the ones that were there is not known.
              fill = NULL, source_version = NULL, upstream = NULL,
              found_at = NULL, found_ledger_rows = NULL, found_table_rows = NULL
        WHERE p.outcome = 'filled' AND p.filled_at IS NULL AND excluded.rows > 0
       RETURNING key
     )
     INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint,
                              rows_deleted, rows_inserted, seconds, checks, warnings, adopted, filled_at, started_by)
     SELECT $1, key, window_start, window_end, $3, 'adopt', 1, $4::pg_catalog.int8, $2, 0, rows, $9, '[]', '{}', true, filled_at, $10
       FROM given JOIN partition USING (key)
     RETURNING key`,
    [
      name,
      fingerprint,
      run,
      claimed?.fence,
      windows.map(({ window }) => window.key),
      windows.map(({ window }) => window.start),
      windows.map(({ window }) => window.end),
      windows.map(({ rows }) => rows),
      seconds,
      startedBy,
    ],
  );
  return adopted.map(({ key }) => key);
}
