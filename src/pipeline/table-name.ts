import type { TableName } from './pipeline.js';

const PART = /"((?:[^"]|"")+)"|([^\s".]+)/y;

/**
 * Reads `table` or `schema.table`. Names are exact: nothing is folded to lower case, and `"…"` is needed only around names
 * that hold a dot, a space or a quote. Undefined for anything else.
 */
export function parseTableName(text: string): TableName | undefined {
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    PART.lastIndex = at;
    const match = PART.exec(text);
    if (!match) return undefined;
    parts.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    at = PART.lastIndex;
    if (at === text.length) break;
    if (text[at] !== '.' || parts.length === 2) return undefined;
    at++;
  }
  const [first = '', second] = parts;
  return second === undefined ? { table: first } : { schema: first, table: second };
}

/** A table's name for messages: `sales_summary`, `mart.sales_summary`. */
export function tableText(name: TableName): string {
  return name.schema === undefined ? name.table : `${name.schema}.${name.table}`;
}
