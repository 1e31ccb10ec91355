import { ONCE, rowsDigest, rowText } from './digest.js';
import type { Session } from './session.js';
import type { WindowCondition } from './window-condition.js';

/** A column that a checksum was taken of, and its type then, as PostgreSQL writes it: another writes the same value otherwise. */
export type SummedColumn = readonly [name: string, type: string];

/** A checksum of some rows, as the ledger keeps it. */
export interface Checksum {
  /** The columns it was taken of: those that the fill wrote, by name. */
  readonly columns: readonly SummedColumn[];
  /** What {@link rowsDigest} said of them. */
  readonly digest: string;
}

/** How the text of a checksum begins; another beginning is another way to work it out, which this version does not know. */
const VERSION = 'c1:';

/**
 * A checksum of the rows that stand in a window, as text: of just the columns given, so that a column which is added to the
 * table later changes none, and with their names and types, so that it can be taken again whatever the pipeline writes by then,
 * or is known not to be. One pass over the window. The same rows have the same one whichever session takes it, given the transaction's pins and the pipeline's zone; but for values
 * whose text is a name: of a type as `regclass`, which the search path may write otherwise.
 */
export async function windowChecksum(
  session: Session,
  window: WindowCondition,
  columns: readonly SummedColumn[],
): Promise<string> {
  const sorted = columns.toSorted(([a], [b]) => (a < b ? -1 : 1));
  const names = sorted.map(([name]) => name);
  await pinMoney(session);
  const [row] = await session.rows<{ digest: string }>(
    `SELECT ${rowsDigest('text')} AS digest
       FROM (SELECT ${rowText(names)} AS text FROM ${window.table} WHERE ${window.condition} ${ONCE}) r`,
    window.values,
  );
  if (!row) throw new Error('An aggregate gave no row');
  return `${VERSION}${row.digest} ${JSON.stringify(sorted)}`;
}

/** Reads a checksum's text; undefined for one of a version that is not known here. */
export function readChecksum(text: string): Checksum | undefined {
  if (!text.startsWith(VERSION)) return undefined;
  const names = text.indexOf('[');
  return {
    columns: JSON.parse(text.slice(names)) as SummedColumn[],
    digest: text.slice(VERSION.length, names).trimEnd(),
  };
}

/**
 * The one setting that the transaction leaves to the role and by which a value's text differs. Not among its pins, since the
 * pipeline's own query may read amounts by it: it is set once that has run.
 */
export async function pinMoney(session: Session): Promise<void> {
  await session.query("SELECT pg_catalog.set_config('lc_monetary', 'C', true)");
}
