import { lineAt } from './invalid-pipeline.js';
import { parseQuery, placeOf, type Tree } from './parse-query.js';
import { sqlTokens } from './sql-tokens.js';

/** One entry of a query's SELECT list. */
export interface SelectedColumn {
  /** The name it gives its column, where the text says it. */
  readonly name?: string;
  /** Whether it is a `*`, which stands for any number of columns. */
  readonly star: boolean;
  /** A bare text or NULL, whose type the column it is written into decides: its SQL text. */
  readonly literal?: string;
  /** From 1 in the query's text. */
  readonly line: number;
}

/** What a query's text says of its columns. */
export interface QueryColumns {
  /** Of the first SELECT where several are united. Empty where the text is no SELECT. */
  readonly columns: readonly SelectedColumn[];
  /** The line of the SELECT that gives them. */
  readonly line: number;
}

/** Reads the list of columns out of a query. Of a text that is not one SELECT nothing is said. */
export async function queryColumns(query: string): Promise<QueryColumns> {
  const { statements, lineOfByte } = await parseQuery(query);
  const first = statements[0]?.SelectStmt as Tree | undefined;
  if (!first) return { columns: [], line: 1 };
  const united = first.larg !== undefined;
  const select = leftmost(first);
  const targets = ((select.targetList ?? []) as readonly { readonly ResTarget: Tree }[]).map(({ ResTarget }) => {
    const value = ResTarget.val as Tree;
    const at = placeOf(ResTarget) ?? 0;
    return { at, column: { ...described(ResTarget, value, united), line: lineOfByte(at) } };
  });
  const [start] = targets;
  return { columns: targets.map(({ column }) => column), line: start ? selectLine(query, start.at) : 1 };
}

/**
 * The entry behind the column at a place of the query's result, which has `total` columns: by its place, where no `*` stands
 * on its left or on its right, else by its name, else the `*`.
 */
export function selectedAt(
  { columns }: QueryColumns,
  place: number,
  total: number,
  name: string,
): SelectedColumn | undefined {
  const first = columns.findIndex(({ star }) => star);
  const last = columns.findLastIndex(({ star }) => star);
  if (first < 0 || place < first) return columns[place];
  const fromEnd = total - place;
  if (fromEnd < columns.length - last) return columns[columns.length - fromEnd];
  return columns.slice(first, last + 1).find((column) => column.name === name && !column.star) ?? columns[first];
}

function leftmost(select: Tree): Tree {
  return select.larg === undefined ? select : leftmost(select.larg as Tree);
}

function described(target: Tree, value: Tree, united: boolean): Omit<SelectedColumn, 'line'> {
  const fields = ((value.ColumnRef as Tree | undefined)?.fields ?? []) as readonly Tree[];
  const last = fields.at(-1);
  const name = (target.name ?? (last?.String as Tree | undefined)?.sval) as string | undefined;
  // A UNION settles the types of its columns by itself.
  const literal = united ? undefined : literalText(value.A_Const as Tree | undefined);
  return {
    ...(name === undefined ? {} : { name }),
    star: last !== undefined && 'A_Star' in last,
    ...(literal === undefined ? {} : { literal }),
  };
}

function literalText(constant: Tree | undefined): string | undefined {
  if (!constant) return undefined;
  if (constant.isnull === true) return 'NULL';
  const text = constant.sval as { readonly sval?: string } | undefined;
  return text === undefined ? undefined : `'${(text.sval ?? '').replaceAll("'", "''")}'`;
}

/** The line of the SELECT before a place given in bytes. */
function selectLine(query: string, bytes: number): number {
  const before = Buffer.from(query).subarray(0, bytes).toString();
  const select = sqlTokens(before).findLast(({ kind, text }) => kind === 'word' && text.toLowerCase() === 'select');
  return lineAt(query, select?.start ?? 0);
}
