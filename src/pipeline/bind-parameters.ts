import type { Granularity } from '../calendar/calendar.js';
import { type FileToRead, invalidPipeline, lineAt } from './invalid-pipeline.js';
import { didYouMean } from './nearest-name.js';
import { type ParameterName, PARAMETERS, type Query } from './pipeline.js';
import type { SqlToken } from './sql-tokens.js';

const TYPES = {
  start: 'timestamptz',
  end: 'timestamptz',
  date: 'date',
  end_date: 'date',
  key: 'text',
} as const satisfies Record<ParameterName, string>;

/** The query of a file, as written there. */
export interface WrittenQuery {
  readonly file: FileToRead;
  readonly text: string;
  /** The file's line in which `text` begins. */
  readonly line: number;
  readonly tokens: readonly SqlToken[];
}

/**
 * The query ready to send: each parameter as a placeholder with its type, the trailing semicolon taken out, and not one
 * other character changed. Throws `InvalidPipeline` for an unknown parameter, a positional one, a second statement, and
 * `:date` or `:end_date` in an hourly pipeline.
 */
export function bindParameters(query: WrittenQuery, by: Granularity): Query {
  const parameters: ParameterName[] = [];
  let text = '';
  let copied = 0;
  const replace = (token: SqlToken, replacement: string): void => {
    text += query.text.slice(copied, token.start) + replacement;
    copied = token.end;
  };
  refuseSecondStatement(query);
  for (const token of query.tokens) {
    if (token.kind === 'semicolon') replace(token, '');
    if (token.kind === 'positional') {
      throw refused(query, token, `${token.text} is no parameter: expected ${listed(PARAMETERS)}.`);
    }
    if (token.kind !== 'parameter') continue;
    const name = parameterName(query, token, by);
    if (!parameters.includes(name)) parameters.push(name);
    replace(token, `($${parameters.indexOf(name) + 1}::pg_catalog.${TYPES[name]})`);
  }
  return { text: (text + query.text.slice(copied)).trim(), parameters };
}

function parameterName(query: WrittenQuery, token: SqlToken, by: Granularity): ParameterName {
  const given = token.text.slice(1);
  const name = PARAMETERS.find((known) => known === given.toLowerCase());
  if (!name) {
    throw refused(
      query,
      token,
      `unknown parameter ${token.text}.${didYouMean(given, PARAMETERS)} There are ${listed(PARAMETERS)}.`,
    );
  }
  if (by === 'hour' && (name === 'date' || name === 'end_date')) {
    throw refused(
      query,
      token,
      `:${name} says nothing in a pipeline by hour, whose windows lie within one date: use :start and :end.`,
    );
  }
  return name;
}

function refuseSecondStatement(query: WrittenQuery): void {
  const tokens = query.tokens.filter((token) => token.kind !== 'comment');
  if (tokens.every((token) => token.kind === 'semicolon')) {
    throw invalidPipeline(query.file, query.line, 'no query: expected one SELECT below the header.');
  }
  const end = tokens.findIndex((token) => token.kind === 'semicolon');
  const second = end < 0 ? undefined : tokens.slice(end).find((token) => token.kind !== 'semicolon');
  if (second)
    throw refused(query, second, 'a second statement begins here: expected one SELECT, and nothing behind its `;`.');
}

function refused(query: WrittenQuery, token: SqlToken, message: string): Error {
  return invalidPipeline(query.file, query.line + lineAt(query.text, token.start) - 1, message);
}

function listed(names: readonly string[]): string {
  return names.map((name) => `:${name}`).join(', ');
}
