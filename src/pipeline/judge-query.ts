import { hasSqlDetails, loadModule, parseSync } from 'libpg-query';
import { lineAt } from './invalid-pipeline.js';
import type { TableName } from './pipeline.js';
import { blankComments } from './sql-tokens.js';
import { tableText } from './table-name.js';

/** Why a query is refused; `line` counts from 1 in the text that was judged. */
export interface QueryProblem {
  readonly line?: number;
  readonly message: string;
}

type Tree = Readonly<Record<string, unknown>>;

const WRITING = {
  InsertStmt: 'INSERT',
  UpdateStmt: 'UPDATE',
  DeleteStmt: 'DELETE',
  MergeStmt: 'MERGE',
} as const;

/**
 * Asks PostgreSQL's own parser whether a text is one SELECT that changes nothing and does not read the target. Undefined
 * where it is. The text's parameters are placeholders already. A name without a schema is taken for one of `public`.
 */
export async function judgeQuery(query: string, target: TableName): Promise<QueryProblem | undefined> {
  // The library's scanner, unlike the server's, does not let a string go on behind a comment.
  const text = blankComments(query);
  await loadModule();
  let statements: readonly Tree[];
  try {
    statements = (parseSync(text).stmts ?? []).map((statement): Tree => ({ ...statement }));
  } catch (error) {
    if (!hasSqlDetails(error)) return { message: `PostgreSQL's parser cannot take it: ${String(error)}.` };
    // The parser counts characters, JavaScript UTF-16 units.
    const before = [...text].slice(0, Math.max(0, error.sqlDetails?.cursorPosition ?? 0)).join('');
    return {
      line: lineAt(before, before.length),
      message: `the query is not SQL that PostgreSQL can parse: ${error.message}.`,
    };
  }
  const statement = statements[0]?.stmt as Tree | undefined;
  if (!statement || statements.length > 1) return { message: 'expected one SELECT.' };
  if (!('SelectStmt' in statement)) {
    return {
      message: `the query is ${withArticle(statementName(statement))}: expected one SELECT that says what the rows are.`,
    };
  }
  const found = firstProblem(statement, { target, tables: new Set() });
  return found && { line: found.at === undefined ? undefined : lineOfByte(text, found.at), message: found.message };
}

interface Scope {
  readonly target: TableName;
  /** Names that a WITH has given, which hide tables. */
  readonly tables: ReadonlySet<string>;
}

interface Found {
  /** Bytes of UTF-8 before the offending part. */
  readonly at?: number;
  readonly message: string;
}

function firstProblem(node: unknown, scope: Scope): Found | undefined {
  if (Array.isArray(node)) return firstOf(node, scope);
  if (typeof node !== 'object' || node === null) return undefined;
  for (const [type, content] of Object.entries(node)) {
    const found = problemOf(type, content as Tree, scope);
    if (found) return found;
  }
  return undefined;
}

function problemOf(type: string, content: Tree, scope: Scope): Found | undefined {
  if (type in WRITING) {
    const verb = WRITING[type as keyof typeof WRITING];
    const relation = content.relation as Tree | undefined;
    return {
      at: location(relation),
      message: `the query holds ${withArticle(verb)}: expected a SELECT that changes nothing.`,
    };
  }
  if (type === 'intoClause')
    return { at: location(content.rel), message: 'SELECT INTO makes a table: leave the INTO out.' };
  if (type === 'lockingClause')
    return { message: 'the query locks rows (FOR UPDATE, FOR SHARE or the like): leave that out.' };
  if (type === 'RangeVar' && readsTarget(content, scope)) {
    return {
      at: location(content),
      message: `the query reads its own target ${tableText(scope.target)}, whose rows are deleted before it runs: expected other tables.`,
    };
  }
  if (typeof content === 'object' && content !== null && 'withClause' in content) return problemInWith(content, scope);
  return firstProblem(content, scope);
}

/** A WITH's names hide tables in the statement and in the queries behind them, with RECURSIVE in all of its queries. */
function problemInWith(statement: Tree, scope: Scope): Found | undefined {
  const { withClause, ...rest } = statement;
  const { ctes = [], recursive = false } = withClause as {
    ctes?: readonly { CommonTableExpr: Tree }[];
    recursive?: boolean;
  };
  const tables = new Set(scope.tables);
  if (recursive) for (const { CommonTableExpr } of ctes) tables.add(String(CommonTableExpr.ctename));
  for (const { CommonTableExpr } of ctes) {
    const found = firstProblem(CommonTableExpr.ctequery, { ...scope, tables: new Set(tables) });
    if (found) return found;
    tables.add(String(CommonTableExpr.ctename));
  }
  return firstProblem(rest, { ...scope, tables });
}

function readsTarget(table: Tree, { target, tables }: Scope): boolean {
  if (table.schemaname === undefined && tables.has(String(table.relname))) return false;
  return table.relname === target.table && (table.schemaname ?? 'public') === (target.schema ?? 'public');
}

function firstOf(nodes: readonly unknown[], scope: Scope): Found | undefined {
  for (const node of nodes) {
    const found = firstProblem(node, scope);
    if (found) return found;
  }
  return undefined;
}

function statementName(statement: Tree): string {
  const type = Object.keys(statement)[0] ?? '';
  if (type in WRITING) return WRITING[type as keyof typeof WRITING];
  return type
    .replace(/Stmt$/, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toUpperCase();
}

function withArticle(verb: string): string {
  return `${/^[AEIOU]/.test(verb) ? 'an' : 'a'} ${verb}`;
}

function location(node: unknown): number | undefined {
  const place = (node as Tree | undefined)?.location;
  return typeof place === 'number' && place >= 0 ? place : undefined;
}

function lineOfByte(text: string, byte: number): number {
  const before = Buffer.from(text).subarray(0, byte).toString();
  return lineAt(before, before.length);
}
