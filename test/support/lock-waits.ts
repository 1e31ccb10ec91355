import { HANG_LIMIT_MS } from './fill.js';
import type { StatementHooks } from './statements.js';

/** Milliseconds of a fill's first wait for its window. */
const FIRST_WAIT_MS = 300;

/**
 * Has a fill wait for its window as often as ever, and each time only so many milliseconds: where what holds the window goes
 * on holding it.
 */
export function lockWaits(milliseconds: number): NonNullable<StatementHooks['rewrite']> {
  return ({ text, values }) => ({
    text,
    values: values.map((value, i) => (values[i - 1] === 'lock_timeout' ? String(milliseconds) : value)),
  });
}

/**
 * Has a fill wait for its window until it is let go, however long that takes on a slow machine: after its first wait, behind which
 * it ends overdue holders.
 */
export const untilLetGo: NonNullable<StatementHooks['rewrite']> = ({ text, values }) => ({
  text,
  values: values.map((value, i) =>
    values[i - 1] === 'lock_timeout' && Number(value) > FIRST_WAIT_MS ? String(HANG_LIMIT_MS) : value,
  ),
});
