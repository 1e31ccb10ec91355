import { Client, Connection } from '@temporalio/client';
import { clientIdentity } from './client-identity.js';
import { temporalUnreachable } from './server-unreachable.js';
import type { TemporalServer } from './temporal-server.js';

/**
 * Connects a client to a Temporal server, in its namespace. It says who it is as `clientIdentity` does. Throws `ServerUnreachable`
 * where none answers within 10 s.
 */
export async function connectTemporal(server: TemporalServer): Promise<Client> {
  let connection: Connection;
  try {
    connection = await Connection.connect(server.connectionOptions);
  } catch {
    throw temporalUnreachable(server.address);
  }
  return new Client({ connection, namespace: server.namespace, identity: clientIdentity() });
}
