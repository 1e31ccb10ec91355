import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { type PostgresOptions, type PostgresServer, startPostgres } from '../../src/dev/postgres.js';
import { until } from './fill.js';
import { shared } from './servers.js';
import { roleUrl, withClient } from './template.js';

/** A database of a test file's own. */
export interface TestDatabase {
  readonly name: string;
  /** Logs in as a worker's role: the ledger's grants, and select, insert and delete on the owner's tables. */
  readonly url: string;
  /** Logs in as the owner of database, ledger and tables. */
  readonly ownerUrl: string;
  readonly superuserUrl: string;
  /** The worker's role, for grants of a test's own. */
  readonly workerRole: string;
  /** Runs SQL as the owner and returns its rows. */
  sql<R extends pg.QueryResultRow = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** Ends every session of the database and removes it. */
  drop(): Promise<void>;
}

/** Makes a database with a current ledger, or with `ledger: false` one without. Cheap: a clone of a template. */
export async function createTestDatabase(options: { readonly ledger?: boolean } = {}): Promise<TestDatabase> {
  const { superuserUrl, ...roles } = await shared('postgres');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const template = (options.ledger ?? true) ? roles.migrated : roles.empty;
  await withClient(superuserUrl, async (superuser) => {
    await onceUnused(() => superuser.query(`CREATE DATABASE ${name} TEMPLATE ${template} OWNER ${roles.owner.name}`));
  });
  const ownerUrl = roleUrl(roles, 'owner', name);
  const pool = new pg.Pool({ connectionString: ownerUrl, max: 4 });
  pool.on('error', () => undefined);
  return {
    name,
    url: roleUrl(roles, 'worker', name),
    ownerUrl,
    superuserUrl: superuserUrl.replace(/[^/]*$/, name),
    workerRole: roles.worker.name,
    sql: async <R extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      (await pool.query<R>(text, [...values])).rows,
    drop: async () => {
      await pool.end();
      await withClient(superuserUrl, async (superuser) => {
        await onceUnused(() => superuser.query(`DROP DATABASE ${name} WITH (FORCE)`));
      });
    },
  };
}

/** The server waits 5 s for those whom it ends, autovacuum among them, to leave a database: a busy one takes longer. */
async function onceUnused(work: () => Promise<unknown>): Promise<void> {
  await until('the database is unused', async () => {
    try {
      await work();
      return true;
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === '55006') return false;
      throw error;
    }
  });
}

/**
 * Starts a PostgreSQL of the test's own, with durability as in production, to be crashed or stopped. `dir` starts an
 * earlier one's cluster again. The test stops it.
 */
export async function startPrivatePostgres(options: Partial<PostgresOptions> = {}): Promise<PostgresServer> {
  const dir = options.dir ?? mkdtempSync(join((await shared('folder')).dir, 'private-'));
  return startPostgres({ template: (await shared('cluster')).dir, ...options, dir });
}
