import type { StatementHooks } from './statements.js';

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
