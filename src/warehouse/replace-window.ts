import { Failure } from '../failure.js';
import type { Scope } from '../pipeline/pipeline.js';
import { abortable } from './abortable.js';
import { attemptName } from './attempt-name.js';
import { nameBlocker } from './blocked-table.js';
import { withdrawClaim } from './claim.js';
import type { Database } from './database.js';
import { endOverdueHolders } from './end-backends.js';
import { sqlstate } from './errors.js';
import type { FillOutcome, FillRequest } from './fill-request.js';
import { windowHeld } from './holder.js';
import { quotedTable } from './identifier.js';
import { look, writeEntry } from './ledger-entry.js';
import { takeLocks, windowLock } from './lock.js';
import { canonicalScope } from './scope.js';
import type { Session } from './session.js';
import type { SpooledSource } from './spooled-supply.js';
import { readTarget, type Target } from './target.js';
import { begin, commit } from './transaction.js';
import { withSession } from './with-session.js';
import { refuseWritten, writeWindow } from './write-window.js';

/**
 * Milliseconds each try waits for the window's lock: short first, since an overdue holder is ended after it; 6 s in all. Each is
 * a transaction of its own, so that none keeps VACUUM back for longer.
 */
export const LOCK_WAITS_MS = [300, 2_700, 3_000] as const;
/** Of a fill that is not to wait: as long as a run that was terminated just now takes to end. */
const BUSY_WAITS_MS = LOCK_WAITS_MS.slice(0, 2);
/** Milliseconds the fill's own statements wait for a lock on the table, such as an ALTER TABLE's. */
const TABLE_LOCK_WAIT_MS = 30_000;

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
  const waits = (request.onBusy ?? 'wait') === 'wait' ? LOCK_WAITS_MS : BUSY_WAITS_MS;
  for (const [i, wait] of waits.entries()) {
    const started = performance.now();
    const result = await withSession(database, signal, async (session) => {
      await begin(session, database, {
        applicationName: attemptName(request.owner, fence),
        zone: request.pipeline.partition.zone,
        lockTimeoutMs: wait,
        statementTimeoutMs: request.timeLeftMs,
      });
      const target = await readTarget(session, request.pipeline);
      const scope = await canonicalScope(session, request.pipeline, target);
      const lock = windowLock(target, request.window, scope);
      request.onStep?.('lock', 0);
      try {
        await takeLocks(session, target, lock);
      } catch (error) {
        if (sqlstate(error) !== '55P03') throw error;
        await session.rollback();
        return { target, blockedOn: lock };
      }
      try {
        return await replaceLocked(session, database, request, fence, { target, scope }, source, started);
      } catch (error) {
        throw await abortable(nameBlocker(error, database, target), signal).catch(() => error);
      }
    });
    if (result === 'overtaken' || !('blockedOn' in result)) return result;
    const { target, blockedOn: lock } = result;
    const ended = await abortable(endOverdueHolders(database, lock, request, fence), signal);
    if (i < waits.length - 1) continue;
    throw await windowHeld(database, target, lock, ended > 0 ? { ...request, onBusy: 'wait' } : request);
  }
  throw new Failure('Unexpected', 'No try was made to take the window’s lock.');
}

async function replaceLocked(
  session: Session,
  database: Database,
  request: FillRequest,
  fence: number,
  { target, scope }: { readonly target: Target; readonly scope: Scope },
  source: SpooledSource | undefined,
  started: number,
): Promise<FillOutcome | 'overtaken'> {
  const { pipeline, window } = request;
  const table = quotedTable(pipeline.target);
  const seen = await look(session, request, { name: target.name, written: table, scope }, TABLE_LOCK_WAIT_MS);
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
  if (seen.rival?.startsWith(`${pipeline.name} (by `)) {
    const { by, zone, column } = pipeline.partition;
    throw new Failure(
      'InvalidPipeline',
      `${target.name} is the target of ${seen.rival}, as another worker has registered it since, and by this worker’s file it is by ${by}, ${zone}, column ${column}: two calendars or scopes would overwrite each other. Give all workers the same file, and start the run again.`,
    );
  }
  if (seen.rival !== undefined) {
    throw new Failure(
      'InvalidPipeline',
      `${target.name} is also the target of ${seen.rival}: two pipelines without disjoint scopes, or two calendars, would overwrite each other. If that one is gone or has changed: DELETE FROM repave.pipeline WHERE name = '…'.`,
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
  const written = await writeWindow(session, database, request, target, source);
  refuseWritten(request, written);
  request.onStep?.('commit', written.inserted);
  const { deleted, inserted, unchanged, checks, checksum, sourceVersion } = written;
  const warnings = [...written.warnings, ...(request.unfinished ? ['unfinished'] : [])];
  const seconds = (performance.now() - started) / 1000;
  const read = { ...request, origin: { ...request.origin, sourceVersion } };
  await writeEntry(session, read, { fence, deleted, inserted, unchanged, seconds, checks, warnings, checksum });
  if (!(await commit(session))) {
    throw new Failure(
      'Conflict',
      `The transaction of ${pipeline.name} ${window.key} was rolled back at COMMIT. It is tried again.`,
    );
  }
  return {
    fence,
    rows: inserted,
    deleted,
    seconds,
    warnings,
    ...(unchanged ? { unchanged } : {}),
    found: false,
  };
}
