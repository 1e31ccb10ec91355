import { LOCK_WAITS_MS } from '../../src/warehouse/replace-window.js';
import { HANG_LIMIT_MS } from './fill.js';
import { pinned } from './pinned.js';
import type { StatementHooks } from './statements.js';

/**
 * Has a fill wait for its window as often as ever, and each time only so many milliseconds: where what holds the window goes
 * on holding it.
 */
export function lockWaits(milliseconds: number): NonNullable<StatementHooks['rewrite']> {
  return pinned('lock_timeout', () => String(milliseconds));
}

/**
 * Has a fill wait for its window until it is let go, however long that takes on a slow machine: after its first wait, behind which
 * it ends overdue holders.
 */
export const untilLetGo = pinned('lock_timeout', (value) =>
  Number(value) > LOCK_WAITS_MS[0] ? String(HANG_LIMIT_MS) : value,
);
