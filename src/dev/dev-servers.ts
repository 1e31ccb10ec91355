import type { Environment } from '../settings.js';
import { connectTemporal } from '../temporal/connect.js';
import { temporalServer } from '../temporal/temporal-server.js';
import { startLocalPostgres } from './local-postgres.js';
import { startLocalTemporal } from './local-temporal.js';
import { onlyThisServer } from './only-this-server.js';
import type { StateFolders } from './state-folder.js';
import type { Supervisor } from './supervise.js';

/** Where people expect them; a free port is taken where somebody else has one. */
const PORTS = { postgres: 5432, frontend: 7233, ui: 8233 } as const;

/** The database that `repave dev` uses. */
export interface UsedDatabase {
  /** A secret. */
  readonly url: string;
  readonly embedded: boolean;
}

/** The Temporal server that `repave dev` uses. */
export interface UsedTemporal {
  readonly address: string;
  /** All `TEMPORAL_*` variables by which a program finds it, and no other server. */
  readonly environment: Readonly<Record<string, string>>;
  /** Absent, as the two below, for a server that the user named. */
  readonly ui?: string;
  /** Path of the CLI. */
  readonly cli?: string;
  /** Version as the CLI tells it. */
  readonly version?: string;
  /** Where it was looked for, and each outcome. */
  readonly tried: readonly string[];
}

/** `DATABASE_URL`'s database, else the embedded one, started. */
export async function devDatabase(
  env: Environment,
  folders: StateFolders,
  supervisor: Supervisor,
  say: (line: string) => void,
): Promise<UsedDatabase> {
  if (env.DATABASE_URL) return { url: env.DATABASE_URL, embedded: false };
  const part = await startLocalPostgres(folders, PORTS.postgres, say);
  supervisor.add(part);
  return { url: part.url, embedded: true };
}

/** `TEMPORAL_ADDRESS`'s server, which must answer; else one of our own, started. Throws `ServerUnreachable`, `InvalidInput`. */
export async function devTemporal(
  env: Environment,
  folders: StateFolders,
  home: string,
  supervisor: Supervisor,
  say: (line: string) => void,
): Promise<UsedTemporal> {
  if (env.TEMPORAL_ADDRESS) {
    const server = temporalServer({ env });
    const client = await connectTemporal(server);
    await client.connection.close();
    return {
      address: server.address,
      environment: temporalVariables(env),
      tried: [`TEMPORAL_ADDRESS: ${server.address}, which answers`],
    };
  }
  const part = await startLocalTemporal(folders, { home, env, ports: PORTS, say });
  supervisor.add(part);
  const { address, cli, tried } = part.server;
  return { address, environment: onlyThisServer(address), ui: part.ui, cli: cli.path, version: cli.version, tried };
}

function temporalVariables(env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[0].startsWith('TEMPORAL_') && entry[1] !== undefined,
    ),
  );
}
