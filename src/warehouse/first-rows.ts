import { quoted } from './identifier.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { WindowCondition } from './window-condition.js';

/** Rows as people look at them: each value in PostgreSQL's own text form, in the order of the columns. */
export interface FirstRows {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
}

/** Characters of a value that are read. */
const LONGEST_VALUE = 10_000;

/** Some rows of a window, at most `limit`, with all of the target's columns; values longer than 10,000 characters are cut. */
export async function firstRows(
  session: Session,
  { table, condition, values }: WindowCondition,
  target: Target,
  limit: number,
): Promise<FirstRows> {
  const columns = target.columns.map(({ name }) => name);
  if (limit === 0) return { columns, rows: [] };
  const shown = columns.map(
    (name, i) => `pg_catalog.left(${quoted(name)}::pg_catalog.text, ${LONGEST_VALUE}) AS v${i}`,
  );
  const rows = await session.rows<Record<string, string | null>>(
    `SELECT ${shown.join(', ')} FROM ${table} WHERE ${condition} LIMIT ${limit}`,
    values,
  );
  return { columns, rows: rows.map((row) => columns.map((_, i) => row[`v${i}`] ?? null)) };
}
