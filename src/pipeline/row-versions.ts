import type { Granularity } from '../calendar/calendar.js';
import { bindParameters } from './bind-parameters.js';
import { queryHash, tokenTexts } from './fingerprint.js';
import { parseQuery, type Tree } from './parse-query.js';
import type { ChangedQuery, ParameterName, Query } from './pipeline.js';
import { type SqlToken, sqlTokens } from './sql-tokens.js';

/** A pipeline's own query, as written and as it is sent. */
export interface OwnQuery {
  readonly written: string;
  readonly tokens: readonly SqlToken[];
  readonly query: Query;
}

/**
 * What `changed: rows` asks: how many rows the query's FROM and WHERE give, and for each table a sum of hashes of the
 * transactions that wrote them. PostgreSQL gives a row that is inserted or updated the number of its own transaction (`xmin`,
 * https://www.postgresql.org/docs/current/ddl-system-columns.html), so that a change is seen whatever its columns say. `tableoid` tells apart the
 * rows of parts that one transaction has loaded.
 *
 * Says instead why a query has none: it reads what has no such rows, or what its FROM does not name.
 */
export async function rowVersions(
  { written, tokens, query }: OwnQuery,
  by: Granularity,
): Promise<{ readonly changed: ChangedQuery } | { readonly problem: string }> {
  const select = await selectOf(query);
  const tables: Tree[] = [];
  const unfit = select ? unfitFor(select, tables) : 'is not one SELECT';
  if (!select || unfit !== undefined) return refused(`the query ${unfit}`);
  const clauses = fromAndWhere(written, tokens);
  if (clauses === undefined) return refused('its FROM cannot be told from the rest of the query');
  const sums = tables.map(
    (table) =>
      `coalesce(pg_catalog.sum(pg_catalog.hashtextextended(${nameOf(table)}.xmin::pg_catalog.text, ${nameOf(table)}.tableoid::pg_catalog.int8)), 0)`,
  );
  const text = `SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), ${sums.join(', ')})\n${clauses}`;
  const built = bindParameters(text, sqlTokens(text), by);
  const builtSelect = await selectOf(built);
  // A version of other rows would never be found out.
  if (!builtSelect || readsOf(builtSelect, built) !== readsOf(select, query))
    return refused('its FROM cannot be told from the rest of the query');
  const hash = queryHash(['rows', ...tokenTexts(sqlTokens(clauses))]);
  return { changed: { query: built, hash, tables: tables.map(fullName) } };
}

function refused(because: string): { readonly problem: string } {
  return {
    problem:
      `changed is rows, and ${because}: expected one SELECT from tables, joined or not, without WITH, UNION or a subquery. ` +
      'Give a query of one value in its place, such as changed: "SELECT max(updated_at) FROM sales WHERE sold_on = :date".',
  };
}

async function selectOf({ text }: Query): Promise<Tree | undefined> {
  const [statement, second] = (await parseQuery(text)).statements;
  return second ? undefined : (statement?.SelectStmt as Tree | undefined);
}

/** Why a SELECT has no versions of rows; undefined where it has. Puts its tables into `tables`. */
function unfitFor(select: Tree, tables: Tree[]): string | undefined {
  if (select.op !== 'SETOP_NONE') return 'unites several SELECTs';
  if (select.withClause !== undefined) return 'has a WITH';
  const from = select.fromClause as readonly Tree[] | undefined;
  if (!from) return 'reads no table';
  for (const item of from) {
    const unfit = unfitItem(item, tables);
    if (unfit !== undefined) return unfit;
  }
  // Wherever it stands, it reads rows that are not among those of FROM.
  return holdsSubquery(select) ? 'has a subquery' : undefined;
}

const UNFIT_ITEMS: Readonly<Record<string, string>> = {
  RangeSubselect: 'has a subquery in FROM',
  RangeFunction: 'calls a function in FROM',
  RangeTableSample: 'reads a sample of a table',
};

function unfitItem(item: Tree, tables: Tree[]): string | undefined {
  const table = item.RangeVar as Tree | undefined;
  if (table) {
    tables.push(table);
    const { colnames = [] } = (table.alias ?? {}) as { readonly colnames?: readonly { readonly String: Tree }[] };
    const hidden = ['xmin', 'tableoid'].find((system) => colnames.some(({ String: name }) => name.sval === system));
    return hidden && `calls a column ${hidden}`;
  }
  const join = item.JoinExpr as Tree | undefined;
  if (!join) return UNFIT_ITEMS[Object.keys(item)[0] ?? ''] ?? 'reads something else than tables in FROM';
  // The name of a join hides those of its tables.
  if (join.alias !== undefined) return 'gives a join a name';
  return unfitItem(join.larg as Tree, tables) ?? unfitItem(join.rarg as Tree, tables);
}

function holdsSubquery(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false;
  return 'SubLink' in node || Object.values(node).some(holdsSubquery);
}

/** Words at which FROM and WHERE are over. All are reserved. */
const ENDS = new Set(['group', 'having', 'window', 'order', 'limit', 'offset', 'fetch', 'for']);

/** The text from a SELECT's own FROM to the end of its WHERE. */
function fromAndWhere(text: string, tokens: readonly SqlToken[]): string | undefined {
  let depth = 0;
  let begin: number | undefined;
  let before = '';
  for (const { kind, text: token, start } of tokens) {
    if (kind === 'comment') continue;
    const word = kind === 'word' ? token.toLowerCase() : token;
    if (word === '(' || word === '[') depth++;
    else if (word === ')' || word === ']') depth--;
    // Behind a dot or AS any word may be a column's name.
    else if (depth === 0 && before !== '.' && before !== 'as') {
      if (begin === undefined && word === 'from' && before !== 'distinct') begin = start;
      else if (begin !== undefined && (kind === 'semicolon' || (kind === 'word' && ENDS.has(word))))
        return text.slice(begin, start).trimEnd();
    }
    before = word;
  }
  return begin === undefined ? undefined : text.slice(begin).trimEnd();
}

/** What a SELECT reads, whatever it makes of it: its FROM and WHERE, without places in the text, parameters by name. */
function readsOf({ fromClause, whereClause }: Tree, { parameters }: Query): string {
  return JSON.stringify([fromClause, whereClause], (key, value: unknown) => {
    if (/location$|list_(start|end)$/.test(key)) return undefined;
    return key === 'ParamRef' ? parameterAt(parameters, value as Tree) : value;
  });
}

function parameterAt(parameters: readonly ParameterName[], { number }: Tree): ParameterName | undefined {
  return parameters[Number(number) - 1];
}

/** By what the rest of a query calls a table. */
function nameOf(table: Tree): string {
  const alias = (table.alias as Tree | undefined)?.aliasname;
  return typeof alias === 'string' ? quoted(alias) : fullName(table);
}

function fullName({ catalogname, schemaname, relname }: Tree): string {
  return [catalogname, schemaname, relname]
    .filter((name) => typeof name === 'string')
    .map(quoted)
    .join('.');
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
