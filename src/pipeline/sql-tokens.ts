import { PARAMETERS } from './pipeline.js';

export type SqlTokenKind =
  'word' | 'quoted' | 'string' | 'number' | 'operator' | 'parameter' | 'positional' | 'semicolon' | 'comment';

/** One token of a query: its kind and its place in the text, end excluded. */
export interface SqlToken {
  readonly kind: SqlTokenKind;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const SPACE = /[ \t\n\r\f\v]+/y;
const LINE_COMMENT = /--[^\n\r]*/y;
const WORD = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const NUMBER = /0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?/y;
const DOLLAR_TAG = /\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$/y;
const POSITIONAL = /\$\d+/y;
const OPERATOR = /[~!@#^&|`?+\-*/%<>=]+/y;
const PARAMETER = /:[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const QUOTED = /"(?:[^"]|"")*(?:"|$)/y;
const PLAIN_STRING = /'(?:[^']|'')*(?:'|$)/y;
const BIT_STRING = /'[^']*(?:'|$)/y;
const ESCAPE_STRING = /'(?:[^'\\]|''|\\[^])*(?:'|\\?$)/y;
/** A string goes on behind white space with a line break, by the rules of its first part. */
const CONTINUATION = /(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*(?=')/y;

/** Words behind which an expression begins, so that a colon there is a parameter's and not a slice's. */
const OPENERS = new Set(
  (
    'all and any array between by case distinct else filter from having ilike in is isnull like limit not offset on or order ' +
    'over select similar some symmetric then to using when where'
  ).split(' '),
);

/**
 * A query's tokens as PostgreSQL's own scanner cuts them, with `standard_conforming_strings` on, and beside those the named
 * parameters. White space is left out. What is not closed reaches to the end of the text: the parser then says so.
 */
export function sqlTokens(text: string): SqlToken[] {
  const tokens: SqlToken[] = [];
  const open: string[] = [];
  let at = 0;

  const match = (pattern: RegExp, from = at): string | undefined => {
    pattern.lastIndex = from;
    return pattern.exec(text)?.[0];
  };
  const push = (kind: SqlTokenKind, length: number): void => {
    tokens.push({ kind, text: text.slice(at, at + length), start: at, end: at + length });
    at += length;
  };
  const pushString = (prefix: number, pattern: RegExp): void => {
    push('string', prefix + (match(pattern, at + prefix)?.length ?? 0));
    for (let space = match(CONTINUATION); space !== undefined; space = match(CONTINUATION)) {
      at += space.length;
      push('string', match(pattern)?.length ?? 0);
    }
  };

  while (at < text.length) {
    const char = text.charAt(at);
    const space = match(SPACE);
    if (space) {
      at += space.length;
    } else if (text.startsWith('--', at)) {
      push('comment', match(LINE_COMMENT)?.length ?? 2);
    } else if (text.startsWith('/*', at)) {
      push('comment', blockCommentLength(text, at));
    } else if (char === "'") {
      pushString(0, PLAIN_STRING);
    } else if (char === '"') {
      push('quoted', match(QUOTED)?.length ?? 1);
    } else if (char === ';') {
      push('semicolon', 1);
    } else if (char === '$') {
      const tag = match(DOLLAR_TAG);
      if (tag) push('string', dollarLength(text, at, tag));
      else push('positional', match(POSITIONAL)?.length ?? 1);
    } else if (char === ':') {
      const parameter = match(PARAMETER);
      if (text.startsWith('::', at) || text.startsWith(':=', at)) push('operator', 2);
      else if (parameter && !isSlice(tokens, open, parameter)) push('parameter', parameter.length);
      else push('operator', 1);
    } else {
      const number = match(NUMBER);
      const word = match(WORD);
      const operator = match(OPERATOR);
      const prefix = /^(?:[ebx]|u&)(?=')/i.exec(text.slice(at, at + 3))?.[0];
      const quotedPrefix = /^u&(?=")/i.test(text.slice(at, at + 3));
      if (number) push('number', number.length);
      else if (prefix) pushString(prefix.length, stringPattern(prefix));
      else if (quotedPrefix) push('quoted', 2 + (match(QUOTED, at + 2)?.length ?? 0));
      else if (word) push('word', word.length);
      else if (operator) push('operator', operatorLength(operator));
      else {
        if (char === '(' || char === '[') open.push(char);
        else if (char === ')' || char === ']') open.pop();
        push('operator', 1);
      }
    }
  }
  return tokens;
}

/** The text with spaces in the place of its comments, so that every other character keeps its place. */
export function blankComments(text: string): string {
  let blanked = '';
  for (const { kind, text: token, start } of sqlTokens(text)) {
    if (kind === 'comment') continue;
    blanked += text.slice(blanked.length, start).replace(/[^\n\r]/g, ' ') + token;
  }
  return blanked;
}

function stringPattern(prefix: string): RegExp {
  if (/^e$/i.test(prefix)) return ESCAPE_STRING;
  return /^[bx]$/i.test(prefix) ? BIT_STRING : PLAIN_STRING;
}

/** Comments nest. */
function blockCommentLength(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text.startsWith('/*', at)) {
      depth++;
      at++;
    } else if (text.startsWith('*/', at)) {
      depth--;
      at++;
      if (depth === 0) return at + 1 - start;
    }
  }
  return text.length - start;
}

function dollarLength(text: string, start: number, tag: string): number {
  const end = text.indexOf(tag, start + tag.length);
  return (end < 0 ? text.length : end + tag.length) - start;
}

/** An operator ends before a comment; one of several characters ends in + or - only where another marks it as an operator. */
function operatorLength(run: string): number {
  const comment = run.search(/--|\/\*/);
  let operator = comment < 0 ? run : run.slice(0, comment);
  while (operator.length > 1 && /[+-]$/.test(operator) && !/[~!@#%^&|`?]/.test(operator))
    operator = operator.slice(0, -1);
  return operator.length;
}

/** Whether the colon stands between the bounds of an array slice: `a[lo:hi]`, `a[1:n]`, `a[:n]`. */
function isSlice(tokens: readonly SqlToken[], open: readonly string[], parameter: string): boolean {
  if (open.at(-1) !== '[') return false;
  const before = tokens.findLast((token) => token.kind !== 'comment');
  if (!before) return false;
  if (before.text === '[') return !isParameter(parameter.slice(1));
  if (before.kind === 'word') return !OPENERS.has(before.text.toLowerCase());
  return before.kind !== 'operator' || before.text === ')' || before.text === ']';
}

function isParameter(name: string): boolean {
  return PARAMETERS.some((known) => known === name.toLowerCase());
}
