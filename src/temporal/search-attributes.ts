import type { ConnectionLike } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../contract.js';

/** A connection of a client's or of a worker's own. */
export type SearchAttributesConnection = Pick<ConnectionLike, 'operatorService' | 'withDeadline' | 'workflowService'>;

/**
 * How a namespace stands to the contract's search attributes. `incomplete`: those that are not there, and those that are
 * there with another type than Keyword, as `RepaveKey (Text)`; neither can be used. `unknown`: the server did not say.
 */
export type SearchAttributesState =
  | { readonly state: 'there' }
  | { readonly state: 'incomplete'; readonly missing: readonly string[]; readonly otherType: readonly string[] }
  | { readonly state: 'unknown'; readonly reason: string };

export interface RegisteredSearchAttributes {
  /** Those that were added now. */
  readonly added: readonly string[];
  /** How the namespace stands after it. */
  readonly now: SearchAttributesState;
}

/** Milliseconds in which a server answers a question about them. */
const ANSWER_WITHIN_MS = 10_000;
/** `INDEXED_VALUE_TYPE_…` of Temporal's API, in the order of their numbers. */
const TYPES = ['Unspecified', 'Text', 'Keyword', 'Int', 'Double', 'Bool', 'Datetime', 'KeywordList'] as const;
const KEYWORD = TYPES.indexOf('Keyword');
/** gRPC's numbers. */
const INVALID_ARGUMENT = 3;

/**
 * Looks which of the search attributes a namespace has, and changes nothing. Where the operator service refuses, as Temporal
 * Cloud's does, it asks by a query, which every reader of the namespace may. Never throws.
 */
export async function searchAttributesState(
  connection: SearchAttributesConnection,
  namespace: string,
): Promise<SearchAttributesState> {
  try {
    const types = await withinTime(connection, () => connection.operatorService.listSearchAttributes({ namespace }));
    return stateOf(new Map(Object.entries(types.customAttributes ?? {})));
  } catch {
    return stateByQueries(connection, namespace);
  }
}

/**
 * Adds the search attributes that a namespace lacks; one that is there with another type is left as it is. Run again, it
 * adds nothing. Never throws: what the server refused is the state's reason.
 */
export async function registerSearchAttributes(
  connection: SearchAttributesConnection,
  namespace: string,
): Promise<RegisteredSearchAttributes> {
  const before = await searchAttributesState(connection, namespace);
  if (before.state !== 'incomplete' || before.missing.length === 0) return { added: [], now: before };
  const searchAttributes = Object.fromEntries(before.missing.map((name) => [name, KEYWORD]));
  try {
    await withinTime(connection, () => connection.operatorService.addSearchAttributes({ namespace, searchAttributes }));
  } catch (error) {
    return { added: [], now: { state: 'unknown', reason: reasonOf(error) } };
  }
  const now = await searchAttributesState(connection, namespace);
  const stillMissing = now.state === 'incomplete' ? now.missing : [];
  return { added: before.missing.filter((name) => !stillMissing.includes(name)), now };
}

/** The command that adds them, for whoever may. `missing`: all where it is not known. */
export function createCommand(
  namespace: string,
  missing: readonly string[] = Object.values(SEARCH_ATTRIBUTES),
  address?: string,
): string {
  const names = missing.map((name) => `--name ${name} --type Keyword`).join(' ');
  const at = address === undefined ? '' : ` --address ${address}`;
  return `temporal operator search-attribute create ${names} --namespace ${namespace}${at}`;
}

function stateOf(types: ReadonlyMap<string, unknown>): SearchAttributesState {
  const names = Object.values(SEARCH_ATTRIBUTES);
  const missing = names.filter((name) => !types.has(name));
  const otherType = names.flatMap((name) => {
    const type = types.get(name);
    return type === undefined || type === KEYWORD ? [] : [`${name} (${typeName(type)})`];
  });
  if (missing.length === 0 && otherType.length === 0) return { state: 'there' };
  return { state: 'incomplete', missing, otherType };
}

function typeName(type: unknown): string {
  return (typeof type === 'number' && TYPES[type]) || 'of another type';
}

/** Only a Keyword takes STARTS_WITH: a query with another type, or with a name that is not there, is refused. */
async function stateByQueries(
  connection: SearchAttributesConnection,
  namespace: string,
): Promise<SearchAttributesState> {
  const missing: string[] = [];
  for (const name of Object.values(SEARCH_ATTRIBUTES)) {
    const query = `${name} STARTS_WITH "x"`;
    try {
      await withinTime(connection, () => connection.workflowService.countWorkflowExecutions({ namespace, query }));
    } catch (error) {
      if (codeOf(error) !== INVALID_ARGUMENT) return { state: 'unknown', reason: reasonOf(error) };
      missing.push(name);
    }
  }
  return missing.length === 0 ? { state: 'there' } : { state: 'incomplete', missing, otherType: [] };
}

function withinTime<Answer>(connection: SearchAttributesConnection, ask: () => Promise<Answer>): Promise<Answer> {
  return connection.withDeadline(Date.now() + ANSWER_WITHIN_MS, ask);
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

/** What the server said, in one line. */
function reasonOf(error: unknown): string {
  const { details, message } = error as { details?: unknown; message?: unknown };
  const said = [details, message].find((text) => typeof text === 'string' && text !== '') ?? error;
  return String(said).split('\n')[0] ?? '';
}
