import { join } from 'node:path';
import { databaseUrl, type Settings } from '../settings.js';
import { type Database, openDatabase } from '../warehouse/database.js';

/** The folder of a project's pipeline files. */
export function pipelinesFolder(settings: Settings): string {
  return join(settings.project, 'pipelines');
}

/**
 * Hands `use` the database that an environment variable names (or a running `repave dev`'s) and closes it however that
 * ends. Throws `InvalidInput` where no URL is set, `DatabaseUnavailable` where the server cannot be reached.
 */
export async function withDatabase<Result>(
  settings: Settings,
  variable: string,
  use: (database: Database) => Promise<Result>,
): Promise<Result> {
  return withDatabaseAt(databaseUrl(settings, variable), use);
}

/** {@link withDatabase} for a URL that is at hand. */
export async function withDatabaseAt<Result>(
  url: string,
  use: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(url, { fills: 1 });
  try {
    return await use(database);
  } finally {
    await database.close();
  }
}

/** The name of the database a connection is in. */
export async function databaseName(database: Database): Promise<string> {
  const [row] = await database.query<{ name: string }>('SELECT pg_catalog.current_database() AS name');
  return row?.name ?? '';
}
