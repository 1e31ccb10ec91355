import { Failure } from '../failure.js';
import { sqlstate } from './errors.js';
import { ONCE, rowsDigest, rowText } from './digest.js';
import { columnsLeftToTheTable } from './fresh-values.js';
import { quoted, quotedList } from './identifier.js';
import type { RowSupply, Supplied } from './row-supply.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { WindowCondition } from './window-condition.js';

/** Where new rows wait to be compared; gone with the transaction. */
const WAITING = 'pg_temp.repave_rows';

/**
 * Lets a fill's new rows into a temporary table, instead of the target, of just the columns that are written, with the types
 * that they have there: so the casts are the INSERT's own, and the source is asked once. What the table holds its rows to
 * beyond their types is for the target to say. Throws `PermissionDenied` where the role may not make temporary tables.
 */
export async function holdRows(session: Session, supply: RowSupply, target: Target): Promise<Supplied> {
  const columns = supply.columns.flatMap((name) => target.columns.filter((column) => column.name === name));
  try {
    await session.query(
      `CREATE TEMPORARY TABLE ${WAITING} (${columns.map(({ name, type }) => `${quoted(name)} ${type}`).join(', ')}) ON COMMIT DROP`,
    );
  } catch (error) {
    if (sqlstate(error) !== '42501') throw error;
    throw new Failure(
      'PermissionDenied',
      '`skipUnchanged` compares rows in a temporary table, which the role may not make: GRANT TEMPORARY ON DATABASE … TO …; or leave the setting out.',
    );
  }
  return supply.write(session, { table: WAITING, mayDropRows: false });
}

/**
 * Whether the rows that wait are those of the window: as many, each as often, by the text of the columns written (so 1.0 is
 * not 1.00, and types without an equality are compared too): see {@link rowsDigest}. Then they lie in the window, whose rows
 * are the same, what the table works out from them too.
 * A column that the fill would leave NULL, or at a constant default, must be so in the old rows: an earlier version of the
 * pipeline may have written it.
 */
export async function equalsWindow(
  session: Session,
  window: WindowCondition,
  columns: readonly string[],
  target: Target,
): Promise<boolean> {
  const filled = target.hasTriggers ? [] : await otherwiseThanLeft(session, columns, target);
  const text = `${rowText(columns)} AS text`;
  const [row] = await session.rows<{ same: boolean }>(
    `SELECT (SELECT ${rowsDigest('text')} FROM (SELECT ${text} FROM ${WAITING} ${ONCE}) new) =
            (SELECT ${rowsDigest('text')}
               FROM (SELECT ${text}, ${filled.join(' OR ') || 'false'} AS otherwise FROM ${window.table} WHERE ${window.condition} ${ONCE}) old
             HAVING NOT coalesce(pg_catalog.bool_or(otherwise), false)) AS same`,
    window.values,
  );
  return row?.same ?? false;
}

/** Conditions of rows in which a column that is not written has another value than the table would give it now. */
async function otherwiseThanLeft(session: Session, written: readonly string[], target: Target): Promise<string[]> {
  const left = target.columns.filter(({ name, generated }) => !generated && !written.includes(name));
  const defaults = left.some(({ hasDefault }) => hasDefault)
    ? await columnsLeftToTheTable(session, target, written)
    : [];
  const constants = defaults.filter(({ kind }) => kind === 'constant');
  return [
    ...left.filter(({ hasDefault }) => !hasDefault).map(({ name }) => `${quoted(name)} IS DISTINCT FROM NULL`),
    // By text, since not every type has an equality.
    ...constants.map(
      ({ name, type, value }) =>
        `${quoted(name)}::pg_catalog.text COLLATE pg_catalog."C" IS DISTINCT FROM (${value})::${type}::pg_catalog.text`,
    ),
  ];
}

/** Writes the rows that wait into the target. */
export async function writeHeldRows(session: Session, table: string, columns: readonly string[]): Promise<void> {
  const list = quotedList(columns);
  await session.query(`INSERT INTO ${table} (${list}) SELECT ${list} FROM ${WAITING}`);
}
