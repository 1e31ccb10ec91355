import { Failure } from '../failure.js';
import { isBuiltIn, isSameInBinary } from './binary-types.js';
import { refuseMismatch } from './columns.js';
import { toFailure } from './errors.js';
import { quoted, quotedList } from './identifier.js';
import type { Session } from './session.js';
import type { SourceColumn } from './source-columns.js';
import type { Target, TargetColumn } from './target.js';

/** How one query's rows go from its database into the target, decided before a row moves. */
export interface Relay {
  /** The columns written, in the query's order. */
  readonly columns: readonly string[];
  readonly format: 'binary' | 'text';
  /** What the source is asked to copy: the query, in the target's types. */
  readonly rows: string;
}

/**
 * How a column's values come to the target's type:
 * - `same`: they have it already.
 * - `cast`: by the source, as an INSERT's assignment would, up to the type's modifier (a length or a scale), which the target's
 *   COPY applies as an assignment does. The cast is judged by the target's server first.
 * - `read`: the target's type reads their text form: an enum of the same name, or an untyped literal.
 */
type Way = 'same' | 'cast' | 'read';

interface Pair {
  readonly from: SourceColumn;
  readonly to: TargetColumn;
}

const TEXT = 25;
/** text, varchar, bpchar, name: what an assignment turns any value into, by its text form. */
const STRINGS: ReadonlySet<number> = new Set([TEXT, 1043, 1042, 19]);

/**
 * Decides how the rows of `query` go into the target's columns. Rows end there as INSERT … SELECT of the same query would have
 * stored them. Throws `SchemaMismatch` for a column that the target lacks, needs or cannot take by an implicit or assignment
 * cast. `session` is the target's; `isLiteral` says of one of the query's columns whether it is an untyped literal.
 */
export async function planRelay(
  session: Session,
  query: string,
  isLiteral: (place: number) => Promise<boolean>,
  given: readonly SourceColumn[],
  pipeline: { readonly name: string; readonly partition: { readonly column: string } },
  target: Pick<Target, 'name' | 'columns'>,
  table: string,
): Promise<Relay> {
  const columns = given.map(({ name }) => name);
  refuseMismatch(pipeline.name, columns, target, pipeline.partition.column);
  const pairs = given.flatMap((from) => target.columns.flatMap((to) => (to.name === from.name ? [{ from, to }] : [])));
  const ways: Way[] = [];
  const judged: string[] = [];
  for (const [i, pair] of pairs.entries()) {
    const found = await wayOf(pair, () => isLiteral(i));
    judged.push(found === 'judge' ? `NULL::${typeOf(pair.from)}` : 'NULL');
    ways.push(found === 'judge' ? await judgedWay(session, pair, pipeline.name) : found);
  }
  if (judged.some((value) => value !== 'NULL')) {
    try {
      await session.describe(`INSERT INTO ${table} (${quotedList(columns)}) SELECT ${judged.join(', ')}`);
    } catch (error) {
      throw toFailure(error, { beforeRows: true });
    }
  }
  const binary = pairs.every(({ to }, i) => ways[i] !== 'read' && isSameInBinary(to.baseId));
  return { columns, format: binary ? 'binary' : 'text', rows: castRows(query, pairs, ways) };
}

/** `judge`: the target's server says whether there is a cast. */
async function wayOf({ from, to }: Pair, isLiteral: () => Promise<boolean>): Promise<Way | 'judge'> {
  if (isBuiltIn(from.typeId) && from.typeId === to.baseId) return 'same';
  if (!isBuiltIn(from.typeId)) {
    if (STRINGS.has(to.baseId)) return 'cast';
    // The same type by name, of two databases. A cast to anything else would be the source's own, unknown to the target.
    if (!isBuiltIn(to.baseId) && from.typeName === to.baseType) return 'read';
    return 'judge';
  }
  // An INSERT reads an untyped literal as the column's type; as a query of its own the source has made it text.
  if (from.typeId === TEXT && !STRINGS.has(to.baseId) && (await isLiteral()))
    return isBuiltIn(to.baseId) ? 'cast' : 'read';
  return 'judge';
}

/** The way of a cast that the server is still to allow. Throws where values cannot go that way, whatever the server allows. */
async function judgedWay(session: Session, { from, to }: Pair, pipeline: string): Promise<Way> {
  if (isBuiltIn(from.typeId) && isBuiltIn(to.baseId)) return 'cast';
  const refuse = (): never => {
    throw new Failure(
      'SchemaMismatch',
      `The rows of ${pipeline} do not fit its target: column ${JSON.stringify(to.name)} is of type ${to.type}, and the source gives ${from.type}, which cannot be cast between the two servers. Cast it in the query. The old rows stand.`,
    );
  };
  if (!isBuiltIn(from.typeId)) return refuse();
  const [cast] = await session.rows<{ byFunction: boolean }>(
    `SELECT castmethod = 'f' AS "byFunction" FROM pg_catalog.pg_cast
      WHERE castsource = $1::pg_catalog.oid AND casttarget = $2::pg_catalog.oid AND castcontext IN ('a', 'i')`,
    [from.typeId, to.baseId],
  );
  // Without one the server refuses it, and says so in its own words.
  return cast?.byFunction ? refuse() : 'read';
}

function typeOf({ typeId, typeName }: SourceColumn): string {
  return isBuiltIn(typeId) ? `pg_catalog.${quoted(typeName)}` : quoted(typeName);
}

/** The type's name alone, so without a modifier: `pg_catalog.bpchar` cuts nothing, which `character` would. */
function castRows(query: string, pairs: readonly Pair[], ways: readonly Way[]): string {
  if (!ways.includes('cast')) return query;
  const values = pairs.map(({ to }, i) => `c${i}${ways[i] === 'cast' ? `::pg_catalog.${quoted(to.baseType)}` : ''}`);
  return `SELECT ${values.join(', ')} FROM (\n${query}\n) AS relayed (${pairs.map((_, i) => `c${i}`).join(', ')})`;
}
