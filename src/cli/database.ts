import { join } from 'node:path';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import { type Database, type DatabaseOptions, openDatabase } from '../warehouse/database.js';

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

/** {@link withDatabase} for one that a pipeline's query reads: a standby will do. */
export async function withSource<Result>(
  settings: Settings,
  variable: string,
  use: (source: Database) => Promise<Result>,
): Promise<Result> {
  return withDatabaseAt(databaseUrl(settings, variable), use, { readOnly: true });
}

/** {@link withSource} for the one that a pipeline's query reads; undefined where that is the target's own. */
export async function withSourceOf<Result>(
  settings: Settings,
  pipeline: Pipeline,
  use: (source: Database | undefined) => Promise<Result>,
): Promise<Result> {
  if (pipeline.kind !== 'sql' || pipeline.source === undefined) return use(undefined);
  return withSource(settings, pipeline.source, use);
}

/** {@link withDatabase} for a URL that is at hand. */
export async function withDatabaseAt<Result>(
  url: string,
  use: (database: Database) => Promise<Result>,
  options: Pick<DatabaseOptions, 'readOnly'> = {},
): Promise<Result> {
  const database = await openDatabase(url, { fills: 1, ...options });
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
