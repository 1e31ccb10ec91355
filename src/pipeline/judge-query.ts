import type { TableName } from './pipeline.js';
import { parseQuery, placeOf, type QueryProblem, type Tree } from './parse-query.js';
import { tableText } from './table-name.js';

const WRITING = {
  InsertStmt: 'INSERT',
  UpdateStmt: 'UPDATE',
  DeleteStmt: 'DELETE',
  MergeStmt: 'MERGE',
} as const;

/** What PostgreSQL's own parser makes of a query. */
export interface Judgement {
  readonly problems: readonly QueryProblem[];
  /** Whether it is one SELECT all the same, whose columns a server can say. */
  readonly isSelect: boolean;
}

/**
 * Asks PostgreSQL's own parser whether a text is one SELECT that changes nothing and does not read the target. No problem
 * where it is. The text's parameters are placeholders already. A name without a schema is taken for one of `public`. Without
 * a target any table may be read.
 */
export async function judgeQuery(query: string, target: TableName | undefined): Promise<Judgement> {
  const refused = (...problems: QueryProblem[]): Judgement => ({ problems, isSelect: false });
  const { statements, lineOfByte, problem } = await parseQuery(query);
  if (problem) return refused(problem);
  const [statement, second] = statements;
  if (!statement || second) return refused({ message: 'expected one SELECT.' });
  if (!('SelectStmt' in statement)) {
    return refused({
      message: `the query is ${withArticle(statementName(statement))}: expected one SELECT that says what the rows are.`,
    });
  }
  const problems = problemsIn(statement, { target, tables: new Set() }).map(({ at, message }) => ({
    line: at === undefined ? undefined : lineOfByte(at),
    message,
  }));
  return { problems, isSelect: !(statement.SelectStmt as Tree).intoClause };
}

interface Scope {
  readonly target: TableName | undefined;
  /** Names that a WITH has given, which hide tables. */
  readonly tables: ReadonlySet<string>;
}

interface Found {
  /** Bytes of UTF-8 before the offending part. */
  readonly at?: number;
  readonly message: string;
}

function problemsIn(node: unknown, scope: Scope): Found[] {
  if (Array.isArray(node)) return node.flatMap((part) => problemsIn(part, scope));
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([type, content]) => problemsOf(type, content as Tree, scope));
}

function problemsOf(type: string, content: Tree, scope: Scope): Found[] {
  if (type in WRITING) {
    const verb = WRITING[type as keyof typeof WRITING];
    return [
      {
        at: placeOf(content.relation),
        message: `the query holds ${withArticle(verb)}: expected a SELECT that changes nothing.`,
      },
    ];
  }
  if (type === 'intoClause')
    return [{ at: placeOf(content.rel), message: 'SELECT INTO makes a table: leave the INTO out.' }];
  if (type === 'lockingClause')
    return [{ message: 'the query locks rows (FOR UPDATE, FOR SHARE or the like): leave that out.' }];
  if (type === 'RangeVar' && readsTarget(content, scope)) {
    return [
      {
        at: placeOf(content),
        message: `the query reads its own target${scope.target ? ` ${tableText(scope.target)}` : ''}, whose rows are deleted before it runs: expected other tables.`,
      },
    ];
  }
  if (typeof content === 'object' && content !== null && 'withClause' in content) return problemsInWith(content, scope);
  return problemsIn(content, scope);
}

/** A WITH's names hide tables in the statement and in the queries behind them, with RECURSIVE in all of its queries. */
function problemsInWith(statement: Tree, scope: Scope): Found[] {
  const { withClause, ...rest } = statement;
  const { ctes = [], recursive = false } = withClause as {
    ctes?: readonly { CommonTableExpr: Tree }[];
    recursive?: boolean;
  };
  const tables = new Set(scope.tables);
  if (recursive) for (const { CommonTableExpr } of ctes) tables.add(String(CommonTableExpr.ctename));
  const found: Found[] = [];
  for (const { CommonTableExpr } of ctes) {
    found.push(...problemsIn(CommonTableExpr.ctequery, { ...scope, tables: new Set(tables) }));
    tables.add(String(CommonTableExpr.ctename));
  }
  return [...found, ...problemsIn(rest, { ...scope, tables })];
}

function readsTarget(table: Tree, { target, tables }: Scope): boolean {
  if (!target) return false;
  if (table.schemaname === undefined && tables.has(String(table.relname))) return false;
  return table.relname === target.table && (table.schemaname ?? 'public') === (target.schema ?? 'public');
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
