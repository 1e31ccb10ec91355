import { Failure } from '../failure.js';
import { abortable } from './abortable.js';
import { attemptName } from './attempt-name.js';
import { nameBlocker } from './blocked-table.js';
import { withdrawClaim } from './claim.js';
import { countWindow, refuseFailedChecks, refuseUnknownColumns, type WindowCondition } from './checks.js';
import { refuseMismatch } from './columns.js';
import { counted } from './counted.js';
import type { Database } from './database.js';
import { describeHolder, endOverdueHolders } from './end-backends.js';
import { sqlstate } from './errors.js';
import type { FillOutcome, FillRequest } from './fill-request.js';
import { quoted, quotedList, quotedTable } from './identifier.js';
import { insertRows, prepareInsert, refuseSelfRead } from './insert.js';
import { look, writeEntry } from './ledger-entry.js';
import { takeLocks, windowLock } from './lock.js';
import { droppedRows, refuseUnaccounted } from './row-accounts.js';
import type { Session } from './session.js';
import type { SpooledRows } from './source-rows.js';
import { bounds, readTarget, type Target } from './target.js';
import { begin, commit } from './transaction.js';
import { withSession } from './with-session.js';

/** Milliseconds each try waits for the window's lock: short first, since an overdue holder is ended after it; 6 s in all. */
const LOCK_WAITS_MS = [300, 2_700, 3_000] as const;
/** Milliseconds the fill's own statements wait for a lock on the table, such as an ALTER TABLE's. */
const TABLE_LOCK_WAIT_MS = 30_000;

/** Rows read before the lock, and the newest fill of the partition when they were. */
export interface SpooledSource extends SpooledRows {
  readonly after: number;
}

/**
 * The transaction of a fill: lock, look, delete, insert, count, check, guard, commit. Returns what was committed, or what an
 * earlier attempt of the run had; `overtaken` where another run filled the window after the spooled rows were read.
 */
export async function replaceWindow(
  database: Database,
  request: FillRequest,
  fence: number,
  signal: AbortSignal,
  source: SpooledSource | undefined,
): Promise<FillOutcome | 'overtaken'> {
  for (const [i, wait] of LOCK_WAITS_MS.entries()) {
    const started = performance.now();
    const result = await withSession(database, signal, async (session) => {
      await begin(session, database, {
        applicationName: attemptName(request.owner, fence),
        zone: request.pipeline.partition.zone,
        lockTimeoutMs: wait,
        statementTimeoutMs: request.timeLeftMs,
      });
      const target = await readTarget(session, request.pipeline);
      request.onStep?.('lock', 0);
      try {
        await takeLocks(session, target, windowLock(target, request.window));
      } catch (error) {
        if (sqlstate(error) !== '55P03') throw error;
        await session.rollback();
        return { blockedOn: windowLock(target, request.window) };
      }
      try {
        return await replaceLocked(session, database, request, fence, target, source, started);
      } catch (error) {
        throw await abortable(nameBlocker(error, database, target), signal).catch(() => error);
      }
    });
    if (result === 'overtaken' || !('blockedOn' in result)) return result;
    await abortable(endOverdueHolders(database, result.blockedOn, request, fence), signal);
    if (i === LOCK_WAITS_MS.length - 1) {
      const holder = await abortable(describeHolder(database, result.blockedOn), signal);
      throw new Failure(
        'Conflict',
        `The window of ${request.pipeline.name} ${request.window.key} is held ${holder}. It is tried again.`,
        {
          // Apart from each other, so that those who wait do not come all at once.
          retryAfterMs: 5_000 + Math.floor(Math.random() * 10_000),
        },
      );
    }
  }
  throw new Failure('Unexpected', 'No try was made to take the window’s lock.');
}

async function replaceLocked(
  session: Session,
  database: Database,
  request: FillRequest,
  fence: number,
  target: Target,
  source: SpooledSource | undefined,
  started: number,
): Promise<FillOutcome | 'overtaken'> {
  const { pipeline, window } = request;
  const table = quotedTable(pipeline.target);
  const seen = await look(session, request, { name: target.name, written: table }, TABLE_LOCK_WAIT_MS);
  if (seen.own) {
    await withdrawClaim(session, request, fence);
    await commit(session);
    return seen.own;
  }
  if (seen.fence !== fence) {
    throw new Failure(
      'StaleAttempt',
      `A newer attempt of ${pipeline.name} ${window.key} began, or its run was ended. Nothing was written.`,
    );
  }
  if (seen.rival !== undefined) {
    throw new Failure(
      'InvalidPipeline',
      `${target.name} is also the target of ${seen.rival}: two pipelines, or two calendars, would overwrite each other. If that one is gone or has changed: DELETE FROM repave.pipeline WHERE name = '…'.`,
    );
  }
  if (seen.oid !== target.oid) {
    throw new Failure(
      'Conflict',
      `The target of ${pipeline.name} was replaced by another table while its lock was awaited. It is tried again.`,
    );
  }
  if (source && seen.latest !== source.after) {
    await session.rollback();
    return 'overtaken';
  }
  refuseUnknownColumns(pipeline, target);

  const column = quoted(pipeline.partition.column);
  const type = `pg_catalog.${target.partitionType}`;
  const inWindow: WindowCondition = {
    table,
    condition: `${column} >= $1::${type} AND ${column} < $2::${type}`,
    values: bounds(window, target.partitionType),
  };
  const insert = pipeline.kind === 'sql' ? await prepareInsert(session, pipeline, target, table) : undefined;

  if (pipeline.kind === 'sql' && target.hasTriggers) await refuseSelfRead(session, pipeline, target);

  request.onStep?.('delete', 0);
  const deleted =
    (await session.query(`DELETE FROM ${table} WHERE ${inWindow.condition}`, inWindow.values)).rowCount ?? 0;
  await refuseKeptRows(session, inWindow, request, target);

  request.onStep?.('insert', 0);
  let inserted: number;
  if (pipeline.kind === 'sql' && insert) {
    inserted = await insertRows(session, pipeline, window, target, insert);
    if (!target.hasTriggers) await refuseSelfRead(session, pipeline, target);
  } else {
    inserted = await copyRows(session, request, target, table, source);
  }
  // What is deferred must happen before the count: at COMMIT a deferred trigger could write rows that nothing has seen.
  await session.query('SET CONSTRAINTS ALL IMMEDIATE');

  request.onStep?.('check', inserted);
  const count = await countWindow(session, inWindow, pipeline, target);
  await refuseUnaccounted(session, database, inWindow, request, target, { sent: inserted, ...count });
  refuseFailedChecks(pipeline, window.key, count.checks);
  const warnings = deleted > 0 && inserted === 0 ? ['emptied'] : [];
  if (warnings.length > 0 && !pipeline.allowEmpty) {
    throw new Failure(
      'CheckFailed',
      `The fill of ${pipeline.name} ${window.key} would empty a window that holds ${counted(deleted)}, and \`allowEmpty\` is false. The old rows stand.`,
    );
  }

  request.onStep?.('commit', inserted);
  const seconds = (performance.now() - started) / 1000;
  await writeEntry(session, request, { fence, deleted, inserted, seconds, checks: count.checks, warnings });
  if (!(await commit(session))) {
    throw new Failure(
      'Conflict',
      `The transaction of ${pipeline.name} ${window.key} was rolled back at COMMIT. It is tried again.`,
    );
  }
  return { fence, rows: inserted, deleted, seconds, warnings, found: false };
}

/**
 * After the DELETE nothing may be left: a trigger may have kept rows, or another session written some, which the new ones
 * would then double. In a savepoint, which gives back the lock that this look takes on the target: `refuseSelfRead` must
 * see the query's own.
 */
async function refuseKeptRows(
  session: Session,
  window: WindowCondition,
  { pipeline, window: { key } }: FillRequest,
  target: Target,
): Promise<void> {
  await session.query('SAVEPOINT repave_kept');
  const [row] = await session.rows<{ kept: boolean }>(
    `SELECT EXISTS (SELECT FROM ${window.table} WHERE ${window.condition}) AS kept`,
    window.values,
  );
  // Released as well, or all that follows would run in the savepoint's own transaction.
  await session.query('ROLLBACK TO SAVEPOINT repave_kept; RELEASE SAVEPOINT repave_kept');
  if (!row?.kept) return;
  if (target.hasTriggers) {
    throw new Failure(
      'SchemaMismatch',
      `A trigger of ${target.name} keeps rows that Repave deletes: the window is not empty after its DELETE. The old rows stand. Drop it, or let it pass Repave’s role.`,
    );
  }
  throw new Failure(
    'Conflict',
    `Another session inserted rows into the window of ${pipeline.name} ${key} while it was filled. It is tried again; let only Repave write there.`,
  );
}

async function copyRows(
  session: Session,
  request: FillRequest,
  target: Target,
  table: string,
  source: SpooledSource | undefined,
): Promise<number> {
  if (!source) throw new Failure('Unexpected', `${request.pipeline.name} has no rows to copy.`);
  // No row has no columns.
  if (source.spool.rows === 0) return 0;
  refuseMismatch(request.pipeline.name, source.columns, target, request.pipeline.partition.column);
  const copied = await session.copy(
    `COPY ${table} (${quotedList(source.columns)}) FROM STDIN`,
    await source.spool.read(),
  );
  if (copied !== source.spool.rows) {
    throw droppedRows(target, source.spool.rows, source.spool.rows - copied);
  }
  return copied;
}
