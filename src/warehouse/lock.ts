import type { Window } from '../calendar/calendar.js';
import type { Scope } from '../pipeline/pipeline.js';
import { scopeHash } from './scope.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/** Sets Repave's advisory locks apart from those of others in the same database. */
const SALT = 0x52455041;

/** The two int4 of a window's advisory lock. Two fills of one target, window and scope share them; neighbours do not. */
export interface WindowLock {
  readonly space: number;
  readonly window: number;
}

/**
 * The lock of a target's window and of a canonical scope in it. By the root's oid: however the table is written, and
 * whichever leaf is named, it is one target. Where two hashes meet, their fills wait for each other, and no more.
 */
export function windowLock(target: Pick<Target, 'root'>, window: Window, scope: Scope = {}): WindowLock {
  return { space: (target.root ^ SALT ^ scopeHash(scope)) | 0, window: window.number };
}

/**
 * SQL that is true of a row `l` of pg_locks which is a granted hold of a window's lock; the statement's values `space` and
 * `window`, such as `$1` and `$2`, are the lock's.
 */
export function isHeld(space: string, window: string): string {
  return `l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
      AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
      -- pg_locks shows the two int4 as unsigned.
      AND l.classid::pg_catalog.int8 = (${space}::pg_catalog.int8 & 4294967295)
      AND l.objid::pg_catalog.int8 = (${window}::pg_catalog.int8 & 4294967295)`;
}

/**
 * SQL that is true of a row `l` of pg_locks which keeps every fill of a target out: whoever has its grid exclusively, or waits
 * for that. The statement's value `root`, such as `$3`, is the target's.
 */
export function keepsFillsOut(root: string): string {
  return `l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.objsubid = 1
      AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
      AND l.classid::pg_catalog.int8 = ${SALT} AND l.objid::pg_catalog.int8 = ${root}::pg_catalog.int8`;
}

/** A target's grid: shared by every fill, exclusive where the grid changes. As text, since it passes 2^53. */
export function gridLock(target: Pick<Target, 'root'>): string {
  return ((BigInt(SALT) << 32n) | BigInt(target.root)).toString();
}

/**
 * Takes the grid's lock shared and the window's exclusively, to the transaction's end. A statement of its own: whoever looks
 * must look in a later one, whose snapshot is taken after the wait. Rejects with 55P03 on the session's lock_timeout.
 */
export async function takeLocks(session: Session, target: Target, lock: WindowLock): Promise<void> {
  await session.query(
    `SELECT pg_catalog.pg_advisory_xact_lock_shared($1::pg_catalog.int8),
            pg_catalog.pg_advisory_xact_lock($2::pg_catalog.int4, $3::pg_catalog.int4)`,
    [gridLock(target), lock.space, lock.window],
  );
}

/** Takes a target's grid shared, as a fill does: what its windows and scopes mean does not change until the transaction ends. */
export async function takeGridShared(session: Session, target: Target): Promise<void> {
  await session.query('SELECT pg_catalog.pg_advisory_xact_lock_shared($1::pg_catalog.int8)', [gridLock(target)]);
}

/** Takes a target's grid exclusively: no fill of it runs until the transaction ends. */
export async function takeGrid(session: Session, target: Target): Promise<void> {
  await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::pg_catalog.int8)', [gridLock(target)]);
}

/** Takes the making of a target's parts exclusively, to the transaction's end: apart from its fills, none of which waits. */
export async function takeParts(session: Session, target: Pick<Target, 'root'>): Promise<void> {
  const parts = ((BigInt(SALT + 1) << 32n) | BigInt(target.root)).toString();
  await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::pg_catalog.int8)', [parts]);
}
