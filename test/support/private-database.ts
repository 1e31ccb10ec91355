import type pg from 'pg';
import type { PostgresServer } from '../../src/dev/postgres.js';
import { makeTemplate, roleUrl, type TestRoles, withClient } from './template.js';

/** A database with a current ledger on a server of the test's own, which it may crash. */
export interface PrivateDatabase {
  /** Logs in as a worker's role. */
  readonly url: string;
  readonly superuserUrl: string;
  readonly workerRole: string;
  /** Runs SQL as the owner over a connection of its own, so that no crash between two calls is in the way. */
  sql<R extends pg.QueryResultRow = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** The same as superuser. */
  admin<R extends pg.QueryResultRow = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** The same database on its server started again, which may have another port. */
  on(server: PostgresServer): PrivateDatabase;
}

const NAME = 'crash';

/** Makes it, with the roles of the shared one. */
export async function createPrivateDatabase(server: PostgresServer): Promise<PrivateDatabase> {
  const roles = await makeTemplate(server);
  await withClient(server.url(), async (superuser) => {
    await superuser.query(`CREATE DATABASE ${NAME} TEMPLATE ${roles.migrated} OWNER ${roles.owner.name}`);
  });
  return at(server, roles);
}

function at(server: PostgresServer, roles: TestRoles): PrivateDatabase {
  const here = { ...roles, port: server.port };
  const run =
    (url: string) =>
    <R extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<R[]> =>
      withClient(url, async (client) => (await client.query<R>(text, [...values])).rows);
  return {
    url: roleUrl(here, 'worker', NAME),
    superuserUrl: server.url(NAME),
    workerRole: roles.worker.name,
    sql: run(roleUrl(here, 'owner', NAME)),
    admin: run(server.url(NAME)),
    on: (restarted) => at(restarted, roles),
  };
}
