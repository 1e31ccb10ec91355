import type { TestDatabase } from './database.js';
import { withClient } from './template.js';

/** Runs SQL in the test's database as its superuser. */
export async function asSuperuser<R extends object = Record<string, unknown>>(
  test: TestDatabase,
  text: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  return withClient(test.superuserUrl, async (superuser) => (await superuser.query<R>(text, [...values])).rows);
}

/** Gives the worker's role defaults of its own in this database: what a session of it begins with. */
export async function setRoleDefaults(test: TestDatabase, defaults: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(defaults)) {
    await asSuperuser(test, `ALTER ROLE ${test.workerRole} IN DATABASE ${test.name} SET ${name} = ${value}`);
  }
}

/**
 * Has the server count the statements of this database's sessions that begin from now on, for its owner to read in
 * `statements.pg_stat_statements`.
 */
export async function countStatements(test: TestDatabase): Promise<void> {
  await asSuperuser(
    test,
    `ALTER DATABASE ${test.name} SET pg_stat_statements.track = 'top';
     CREATE SCHEMA statements; CREATE EXTENSION pg_stat_statements SCHEMA statements;
     GRANT USAGE ON SCHEMA statements TO PUBLIC; GRANT pg_read_all_stats TO ${new URL(test.ownerUrl).username};
     SELECT statements.pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = current_database()`,
  );
}
