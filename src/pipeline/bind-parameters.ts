import type { Granularity } from '../calendar/calendar.js';
import { lineAt } from './invalid-pipeline.js';
import type { QueryProblem } from './parse-query.js';
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

/** Why a query's parameters cannot be bound, all that is wrong: lines count from 1 in the query's text. */
export class UnboundQuery extends Error {
  constructor(
    readonly problems: readonly QueryProblem[],
    /** The query with NULL in the place of what cannot be bound, to be parsed and no more; absent where it is no query. */
    readonly text?: string,
  ) {
    super(problems[0]?.message);
  }
}

/**
 * The query ready to send: each parameter as a placeholder with its type, the trailing semicolon taken out, and not one
 * other character changed. `behind` are the parameters of the statement that it is to run in. Throws {@link UnboundQuery} for
 * an unknown parameter, a positional one, a second statement, and `:date` or `:end_date` in an hourly pipeline.
 */
export function bindParameters(
  text: string,
  tokens: readonly SqlToken[],
  by: Granularity,
  behind: readonly ParameterName[] = [],
): Query {
  const parameters: ParameterName[] = [...behind];
  const slots: { name: ParameterName; type: string }[] = [];
  const pieces: string[] = [];
  let piece = '';
  let copied = 0;
  const problems: QueryProblem[] = [];
  refuseSecondStatement(text, tokens);
  for (const token of tokens) {
    if (token.kind === 'semicolon') {
      piece += text.slice(copied, token.start);
      copied = token.end;
    }
    if (token.kind !== 'parameter' && token.kind !== 'positional') continue;
    const { name, wrong } = parameterName(token, by);
    if (name === undefined) {
      problems.push({ line: lineAt(text, token.start), message: wrong });
      piece += `${text.slice(copied, token.start)}NULL`;
      copied = token.end;
      continue;
    }
    if (!parameters.includes(name)) parameters.push(name);
    slots.push({ name, type: `pg_catalog.${TYPES[name]}` });
    pieces.push(piece + text.slice(copied, token.start));
    piece = '';
    copied = token.end;
  }
  pieces.push(piece + text.slice(copied));
  pieces[0] = (pieces[0] ?? '').trimStart();
  pieces.push((pieces.pop() ?? '').trimEnd());
  const written = pieces.map((before, i) => {
    const slot = slots[i];
    return slot ? `${before}($${parameters.indexOf(slot.name) + 1}::${slot.type})` : before;
  });
  if (problems.length > 0) throw new UnboundQuery(problems, written.join(''));
  return { text: written.join(''), parameters, pieces, slots };
}

type Named =
  { readonly name: ParameterName; readonly wrong?: undefined } | { readonly name?: undefined; readonly wrong: string };

function parameterName(token: SqlToken, by: Granularity): Named {
  if (token.kind === 'positional') return { wrong: `${token.text} is no parameter: expected ${listed(PARAMETERS)}.` };
  const given = token.text.slice(1);
  const name = PARAMETERS.find((known) => known === given.toLowerCase());
  if (!name) {
    const near = didYouMean(given, PARAMETERS);
    return { wrong: `unknown parameter ${token.text}.${near} There are ${listed(PARAMETERS)}.` };
  }
  if (by === 'hour' && (name === 'date' || name === 'end_date')) {
    return {
      wrong: `:${name} says nothing in a pipeline by hour, whose windows lie within one date: use :start and :end.`,
    };
  }
  return { name };
}

function refuseSecondStatement(text: string, given: readonly SqlToken[]): void {
  const tokens = given.filter((token) => token.kind !== 'comment');
  if (tokens.every((token) => token.kind === 'semicolon')) {
    throw new UnboundQuery([{ line: 1, message: 'no query: expected one SELECT.' }]);
  }
  const end = tokens.findIndex((token) => token.kind === 'semicolon');
  const second = end < 0 ? undefined : tokens.slice(end).find((token) => token.kind !== 'semicolon');
  if (second)
    throw refused(text, second, 'a second statement begins here: expected one SELECT, and nothing behind its `;`.');
}

function refused(text: string, token: SqlToken, message: string): UnboundQuery {
  return new UnboundQuery([{ line: lineAt(text, token.start), message }]);
}

function listed(names: readonly string[]): string {
  return names.map((name) => `:${name}`).join(', ');
}
