import { Client, Connection } from '@temporalio/client';
import { clientIdentity } from './client-identity.js';
import { temporalLate, temporalUnreachable } from './server-unreachable.js';
import type { TemporalServer } from './temporal-server.js';

/**
 * Connects a client to a Temporal server, in its namespace. It says who it is as `clientIdentity` does. Throws `ServerUnreachable`
 * where none answers within 10 s, or within `patienceMs`: then it says that much and no more. So it does of an address that is none.
 */
export async function connectTemporal(server: TemporalServer, patienceMs?: number): Promise<Client> {
  const { connectionOptions, address } = server;
  const begun = Date.now();
  let connection: Connection | undefined;
  try {
    connection = Connection.lazy({ ...connectionOptions, ...(patienceMs && { connectTimeout: patienceMs }) });
    await connection.ensureConnected();
  } catch {
    // Else it would go on trying, and hold the process.
    await connection?.close();
    const isLate = patienceMs !== undefined && Date.now() - begun > patienceMs / 2;
    throw isLate ? temporalLate(address, patienceMs) : temporalUnreachable(address);
  }
  return new Client({ connection, namespace: server.namespace, identity: clientIdentity() });
}
