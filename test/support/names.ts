/** Each a schema, a table, a partition column and another column. */
export const NAMES: Readonly<Record<string, readonly [schema: string, table: string, column: string, other: string]>> =
  {
    'mixed case': ['Raw', 'Order', 'createdAt', 'totalSum'],
    'reserved words': ['select', 'table', 'user', 'order'],
    quotes: ['a"b', `it's`, 'a"b', `"`],
    'what would end a statement': [
      `x"; DROP TABLE public.canary; --`,
      `t'; DROP TABLE public.canary; --`,
      `c") VALUES (1); DROP TABLE public.canary; --`,
      `$1; DROP TABLE public.canary`,
    ],
    'spaces, dots, percent, backslashes and other scripts': ['my schema', 'a.b', 'Дата %s', '\\n $$ 🗓'],
    'the longest there can be': ['s'.repeat(63), 't'.repeat(63), 'c'.repeat(63), 'd'.repeat(63)],
  };

/** A name as SQL writes it. */
export const id = (name: string): string => `"${name.replaceAll('"', '""')}"`;
