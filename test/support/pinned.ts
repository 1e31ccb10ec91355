import type { StatementHooks } from './statements.js';

/** Has each transaction pin another value of one setting: as `change` makes it of the product's own. */
export function pinned(setting: string, change: (value: string) => string): NonNullable<StatementHooks['rewrite']> {
  return ({ text, values }) => ({
    text,
    values: values.map((value, i) => (values[i - 1] === setting ? change(String(value)) : value)),
  });
}
