import type { Window } from '../calendar/calendar.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/** Sets Repave's advisory locks apart from those of others in the same database. */
const SALT = 0x52455041;

/** The two int4 of a window's advisory lock. Two fills of one target and window share them; neighbours do not. */
export interface WindowLock {
  readonly space: number;
  readonly window: number;
}

/** A target's window. By the root's oid: however the table is written, and whichever leaf is named, it is one target. */
export function windowLock(target: Pick<Target, 'root'>, window: Window): WindowLock {
  return { space: (target.root ^ SALT) | 0, window: window.number };
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

/** Takes a target's grid exclusively: no fill of it runs until the transaction ends. */
export async function takeGrid(session: Session, target: Target): Promise<void> {
  await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::pg_catalog.int8)', [gridLock(target)]);
}
