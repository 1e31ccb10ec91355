import { cut } from './format.js';
import type { Output } from './output.js';
import { table } from './table.js';

/** Columns between two cells of a {@link table} on a terminal. */
const GAP = 2;
/** Columns of a cell below which it says nothing any more. */
const NARROWEST = 6;
/** Characters of a value on a terminal; wider ones are cut. */
const WIDEST = 60;

/** Rows of a database's table, and the names of the columns that the terminal was too narrow for. */
export interface RowTable {
  readonly text: string;
  readonly leftOut: readonly string[];
}

/**
 * Rows under their columns' names, one line a row: on a terminal fitted to its width, by cutting long values and then by
 * leaving the last columns out; in a pipe whole. NULL stands as `NULL`; tabs, newlines and other control characters are
 * escaped, so that no value can do anything to the terminal or to the lines.
 */
export function rowTable(
  output: Output,
  columns: readonly string[],
  rows: readonly (readonly (string | null)[])[],
): RowTable {
  const headings = columns.map(printable);
  const cells = rows.map((row) => row.map((value) => (value === null ? 'NULL' : printable(value))));
  if (!output.interactive) return { text: table(output, headings.map(named), cells), leftOut: [] };
  const widths = headings.map((heading, i) =>
    Math.min(WIDEST, Math.max(heading.length, ...cells.map((row) => row[i]?.length ?? 0))),
  );
  let shown = columns.length;
  while (shown > 1 && narrowed(widths.slice(0, shown), NARROWEST) > room(output, shown)) shown--;
  const limit = widest(widths.slice(0, shown), room(output, shown));
  const fitted = cells.map((row) => row.slice(0, shown).map((cell) => cut(cell, limit)));
  const heads = headings.slice(0, shown).map((heading) => named(cut(heading, limit)));
  return { text: table(output, heads, fitted), leftOut: columns.slice(shown) };
}

function named(heading: string): { readonly heading: string } {
  return { heading };
}

function room(output: Output, columns: number): number {
  return output.columns - GAP * (columns - 1);
}

/** The widest that cells may be so that all fit. */
function widest(widths: readonly number[], room: number): number {
  let limit = Math.max(NARROWEST, ...widths);
  while (limit > NARROWEST && narrowed(widths, limit) > room) limit--;
  return limit;
}

function narrowed(widths: readonly number[], limit: number): number {
  return widths.reduce((sum, width) => sum + Math.min(width, limit), 0);
}

const ESCAPES: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** A value as one line of visible characters. */
function printable(value: string): string {
  return value.replace(
    // eslint-disable-next-line no-control-regex -- these are what must not reach a terminal
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => ESCAPES[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
