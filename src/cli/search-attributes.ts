import type { Settings } from '../settings.js';
import type { RegisteredSearchAttributes, SearchAttributesConnection } from '../temporal/search-attributes.js';
import { temporalServer, type TemporalServer } from '../temporal/temporal-server.js';
import { type Finding, fine, unsure } from './finding.js';

/** What has become of the search attributes, for programs and for people. */
export interface PreparedSearchAttributes {
  /** Absent: no Temporal server is named. */
  readonly outcome?: RegisteredSearchAttributes;
  readonly lines: readonly string[];
}

/**
 * Registers the contract's search attributes on the Temporal server that is named, or with `register: false` looks which are
 * missing. A server that is not named is never asked. Never throws: whatever stands in the way is said in one line, with the
 * command to run by hand.
 */
export async function prepareSearchAttributes(
  settings: Settings,
  { register }: { readonly register: boolean },
): Promise<PreparedSearchAttributes> {
  const { createCommand, registerSearchAttributes, searchAttributesState } =
    await import('../temporal/search-attributes.js');
  const { connectTemporal } = await import('../temporal/connect.js');
  const byHand = (server: Partial<TemporalServer>, missing?: readonly string[]): string =>
    `To search runs by pipeline and key, run: ${createCommand(server.namespace ?? 'default', missing, server.address)}`;

  let server: TemporalServer | undefined;
  try {
    server = temporalServer(settings);
    if (!server.named) {
      return { lines: [`Search attributes: no Temporal server is named by TEMPORAL_ADDRESS. ${byHand({})}`] };
    }
    const client = await connectTemporal(server);
    try {
      const { connection } = client;
      const { namespace } = server;
      const outcome = register
        ? await registerSearchAttributes(connection, namespace)
        : { added: [], now: await searchAttributesState(connection, namespace) };
      return { outcome, lines: said(outcome, register, (missing) => byHand(server ?? {}, missing)) };
    } finally {
      await client.connection.close();
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return {
      outcome: { added: [], now: { state: 'unknown', reason } },
      lines: [`Search attributes: ${reason} ${byHand(server ?? {})}`],
    };
  }
}

function said(
  { added, now }: RegisteredSearchAttributes,
  register: boolean,
  byHand: (missing?: readonly string[]) => string,
): string[] {
  const lines = added.length > 0 ? [`Search attributes added: ${added.join(', ')}.`] : [];
  switch (now.state) {
    case 'there':
      return lines.length > 0 ? lines : ['Search attributes: all are there.'];
    case 'unknown':
      return [...lines, `Search attributes: the Temporal server refused (${now.reason}). ${byHand()}`];
    case 'incomplete':
      break;
    default:
      now satisfies never;
  }
  if (now.missing.length > 0) {
    const what = register ? 'could not be added' : 'would be added';
    lines.push(`Search attributes: ${now.missing.join(', ')} ${what}.${register ? ` ${byHand(now.missing)}` : ''}`);
  }
  if (now.otherType.length > 0) {
    lines.push(
      `Search attributes: ${now.otherType.join(', ')} should be of type Keyword, so none is used. Remove the other one, then run this again.`,
    );
  }
  return lines;
}

/** What `repave doctor` says of them: without them everything works, and is only not found by them. */
export async function examineSearchAttributes(
  connection: SearchAttributesConnection,
  namespace: string,
): Promise<Finding> {
  const { createCommand, searchAttributesState } = await import('../temporal/search-attributes.js');
  const found = await searchAttributesState(connection, namespace);
  switch (found.state) {
    case 'there':
      return fine('the search attributes are there');
    case 'unknown':
      return unsure(`the search attributes: the Temporal server did not say (${found.reason})`);
    case 'incomplete':
      break;
    default:
      return found satisfies never;
  }
  const { missing, otherType } = found;
  if (otherType.length > 0) {
    return unsure(`the search attributes: ${otherType.join(', ')} should be of type Keyword, so none is used`);
  }
  const command = createCommand(namespace, missing);
  return unsure(`the search attributes ${missing.join(', ')} are missing: runs are not found by them`, command);
}
