import Table from 'cli-table3';
import type { Output } from './output.js';

const NO_BORDERS = Object.fromEntries(
  [
    ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
    ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'],
  ].map((name) => [name, '']),
);

/** A column of {@link table}: its heading and where its text stands. */
export interface Column {
  readonly heading: string;
  readonly align?: 'left' | 'right';
}

/** Rows under headings: aligned without borders on a terminal, tab-separated in a pipe so that `cut` and `awk` read them. */
export function table(output: Output, columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const headings = columns.map((column) => column.heading);
  if (!output.interactive) return [headings, ...rows].map((row) => row.join('\t')).join('\n');
  const made = new Table({
    chars: { ...NO_BORDERS, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    head: headings.map((heading) => output.colors.dim(heading)),
    colAligns: columns.map((column) => column.align ?? 'left'),
  });
  for (const row of rows) made.push([...row]);
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
