import { quotedList } from './identifier.js';

/** An expression: a row as one text, of the columns in the order given. */
export function rowText(columns: readonly string[]): string {
  return `ROW(${quotedList(columns)})::pg_catalog.text COLLATE pg_catalog."C"`;
}

/**
 * An expression over a set of rows, for a SELECT list: how many there are, and two 64-bit hashes of each one's text, summed.
 * So it says the same of the same rows in any order, each as often; rows that differ would have to meet in both sums. By text,
 * so that types without an equality count too, and 1.0 is not 1.00.
 *
 * `text` is a column with what {@link rowText} gives, of a subquery that {@link ONCE} keeps apart.
 */
export function rowsDigest(text: string): string {
  const sums = [0, 1].map((seed) => `coalesce(pg_catalog.sum(pg_catalog.hashtextextended(${text}, ${seed})), 0)`);
  return `pg_catalog.format('%s %s %s', pg_catalog.count(*), ${sums.join(', ')})`;
}

/** Ends a subquery whose texts are to be made once a row: merged into the query above, both hashes would make their own. */
export const ONCE = 'OFFSET 0';
