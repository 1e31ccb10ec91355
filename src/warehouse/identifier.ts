import pg from 'pg';
import type { TableName } from '../pipeline/pipeline.js';

/** An identifier as SQL text, always quoted. */
export function quoted(identifier: string): string {
  return pg.escapeIdentifier(identifier);
}

/** A table's name as SQL text; without a schema, the search path finds it. */
export function quotedTable(table: TableName): string {
  return table.schema === undefined ? quoted(table.table) : `${quoted(table.schema)}.${quoted(table.table)}`;
}

/** A comma-separated list of identifiers as SQL text. */
export function quotedList(identifiers: readonly string[]): string {
  return identifiers.map(quoted).join(', ');
}
