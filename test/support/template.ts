import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { PostgresServer } from '../../src/dev/postgres.js';
import { openDatabase } from '../../src/warehouse/database.js';
import { grantsFor, migrate } from '../../src/warehouse/migrate.js';

/** Databases to clone, and whom tests log in as. */
export interface TestRoles {
  readonly port: number;
  /** Owns the test databases, their ledger and the tables that tests make. */
  readonly owner: { readonly name: string; readonly password: string };
  /** What a worker logs in as: nothing but the grants of the ledger, and select, insert and delete on the owner's tables. */
  readonly worker: { readonly name: string; readonly password: string };
  /** Holds a current ledger. */
  readonly migrated: string;
  /** Holds none. */
  readonly empty: string;
}

/** Makes the roles and the two template databases. */
export async function makeTemplate(server: PostgresServer): Promise<TestRoles> {
  const roles: TestRoles = {
    port: server.port,
    owner: { name: 'test_owner', password: randomBytes(12).toString('hex') },
    worker: { name: 'test_worker', password: randomBytes(12).toString('hex') },
    migrated: 'template_migrated',
    empty: 'template_empty',
  };
  await withClient(server.url(), async (superuser) => {
    await superuser.query(`CREATE ROLE ${roles.owner.name} LOGIN PASSWORD '${roles.owner.password}'`);
    await superuser.query(`CREATE ROLE ${roles.worker.name} LOGIN PASSWORD '${roles.worker.password}'`);
    await superuser.query(`CREATE DATABASE ${roles.empty} OWNER ${roles.owner.name}`);
    await withClient(roleUrl(roles, 'owner', roles.empty), async (owner) => {
      await owner.query(`ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, DELETE ON TABLES TO ${roles.worker.name}`);
    });
    await superuser.query(`CREATE DATABASE ${roles.migrated} TEMPLATE ${roles.empty} OWNER ${roles.owner.name}`);
    await migrateTemplate(roles);
    for (const name of [roles.empty, roles.migrated]) {
      await superuser.query(`ALTER DATABASE ${name} IS_TEMPLATE true ALLOW_CONNECTIONS false`);
    }
  });
  return roles;
}

export function roleUrl(roles: TestRoles, role: 'owner' | 'worker', database: string): string {
  return `postgres://${roles[role].name}:${roles[role].password}@127.0.0.1:${roles.port}/${database}`;
}

/** Runs `use` with a connected client, and ends it. */
export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  // An ended backend would otherwise end the test process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function migrateTemplate(roles: TestRoles): Promise<void> {
  const database = await openDatabase(roleUrl(roles, 'owner', roles.migrated), { fills: 1 });
  try {
    await migrate(database);
    // A clone has the grants of everything in the database; everybody may connect to it.
    for (const grant of grantsFor(roles.worker.name, roles.migrated, [])) await database.query(grant);
  } finally {
    await database.close();
  }
}
