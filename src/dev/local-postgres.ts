import pg from 'pg';
import { type PostgresServer, startPostgres } from './postgres.js';
import type { StateFolders } from './state-folder.js';
import type { Part } from './supervise.js';

/** The database of an embedded cluster that Repave uses. */
const DATABASE = 'repave';

/** An embedded PostgreSQL with an empty or kept database, as a part to be stopped. */
export interface LocalPostgres extends Part {
  readonly server: PostgresServer;
  /** Logs in as the cluster's owner. A secret. */
  readonly url: string;
}

/** Starts the embedded PostgreSQL over `folders.postgres`, on `port` where that is free, and makes its database. */
export async function startLocalPostgres(
  folders: StateFolders,
  port: number | undefined,
  say: (line: string) => void,
): Promise<LocalPostgres> {
  const server = await startPostgres({ dir: folders.postgres, binariesDir: folders.binaries, port, say });
  if (port !== undefined && server.port !== port) say(`Port ${port} is taken: PostgreSQL listens on ${server.port}.`);
  const part: LocalPostgres = {
    name: 'PostgreSQL',
    server,
    url: server.url(DATABASE),
    ended: server.ended,
    logFile: server.logFile,
    stop: (hard) => server.stop(hard ? 'immediate' : 'fast'),
  };
  try {
    await createDatabase(server);
  } catch (error) {
    await part.stop(false);
    throw error;
  }
  return part;
}

async function createDatabase(server: PostgresServer): Promise<void> {
  const client = new pg.Client({ connectionString: server.url() });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
}
