import { hasSqlDetails, loadModule, parseSync } from 'libpg-query';
import { lineAt } from './invalid-pipeline.js';
import { blankComments } from './sql-tokens.js';

/** Why a query is refused; `line` counts from 1 in the text that was judged. */
export interface QueryProblem {
  readonly line?: number;
  readonly message: string;
}

/** A node of the parser's tree: its fields, or one field that is named for its type. */
export type Tree = Readonly<Record<string, unknown>>;

/** A query as PostgreSQL's own parser takes it apart, or why it cannot. */
export interface ParsedQuery {
  /** Empty where there is a problem. */
  readonly statements: readonly Tree[];
  readonly problem?: QueryProblem;
  /** The line, from 1, of a place in the tree. */
  readonly lineOfByte: (byte: number) => number;
}

/** Parses a text whose parameters are placeholders already. The tree's places are bytes of UTF-8 before a node. */
export async function parseQuery(query: string): Promise<ParsedQuery> {
  // The library's scanner, unlike the server's, does not let a string go on behind a comment.
  const text = blankComments(query);
  const refused = (problem: QueryProblem): ParsedQuery => ({ statements: [], problem, lineOfByte: () => 1 });
  await loadModule();
  try {
    const statements = (parseSync(text).stmts ?? []).map(({ stmt }): Tree => ({ ...stmt }));
    return { statements, lineOfByte: (byte) => lineOfByte(text, byte) };
  } catch (error) {
    if (!hasSqlDetails(error)) return refused({ message: `PostgreSQL's parser cannot take it: ${String(error)}.` });
    return refused({
      line: lineOfCharacter(text, error.sqlDetails?.cursorPosition ?? 0),
      message: `the query is not SQL that PostgreSQL can parse: ${error.message}.`,
    });
  }
}

/** Bytes of UTF-8 before a node; undefined where the tree does not say. */
export function placeOf(node: unknown): number | undefined {
  const place = (node as Tree | undefined)?.location;
  return typeof place === 'number' && place >= 0 ? place : undefined;
}

/** The line, from 1, of a place that PostgreSQL counts in characters from 0: JavaScript counts UTF-16 units. */
export function lineOfCharacter(text: string, characters: number): number {
  const before = [...text].slice(0, Math.max(0, characters)).join('');
  return lineAt(before, before.length);
}

function lineOfByte(text: string, byte: number): number {
  const before = Buffer.from(text).subarray(0, byte).toString();
  return lineAt(before, before.length);
}
