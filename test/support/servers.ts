import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '../../src/dev/postgres.js';
import { startTemporal } from '../../src/dev/temporal-server.js';
import { makeRunFolder, removeRunFolder } from './run-folder.js';
import { makeTemplate, type TestRoles } from './template.js';

/**
 * One PostgreSQL and one Temporal server for a test run, each started when the first test asks for it, whichever process
 * that test runs in: the main process listens, and tests ask it under the address it leaves in the environment.
 */
export interface SharedServers {
  /** The shared PostgreSQL, with the migrated template database and the roles that tests log in as. */
  readonly postgres: TestRoles & { readonly superuserUrl: string };
  /** A stopped, empty cluster to copy. */
  readonly cluster: { readonly dir: string };
  readonly temporal: { readonly address: string; readonly cli: string };
  /** The run's folder, for what a test starts itself. */
  readonly folder: { readonly dir: string };
}

const ADDRESS = 'REPAVE_TEST_SERVERS';
/** The checkout keeps a downloaded Temporal CLI for dev, demo and tests alike. */
export const CLI_HOME = fileURLToPath(new URL('../../.repave/temporal-cli', import.meta.url));

/** Asks the run's main process for a server; rejects with its reason where it could not be started. */
export async function shared<K extends keyof SharedServers>(name: K): Promise<SharedServers[K]> {
  const address = process.env[ADDRESS];
  if (!address) throw new Error('The test run has no servers: run mocha with --require test/support/servers.ts');
  const answer = await fetch(`${address}/${name}`, { headers: { connection: 'close' } });
  if (!answer.ok) throw new Error(`The test run's ${name} could not be started: ${await answer.text()}`);
  return (await answer.json()) as SharedServers[K];
}

// A process that a signal ends takes its servers with it: they go when it exits, and by default it would not get to that.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

const stops: (() => Promise<unknown>)[] = [];
let broker: Server | undefined;

/** Starts nothing yet, so that a run that needs no server, or only lists its tests, has none. */
export async function mochaGlobalSetup(): Promise<void> {
  const token = randomBytes(16).toString('hex');
  broker = createServer((request, response) => {
    const name = request.url?.replace(`/${token}/`, '') ?? '';
    const start = Object.hasOwn(starters, name) ? starters[name as keyof SharedServers] : undefined;
    if (!start) {
      response.writeHead(404).end(`there is no ${name}`);
      return;
    }
    start().then(
      (value) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value)),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.stack : String(error)),
    );
  });
  broker.requestTimeout = 0;
  const listening = broker;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const address = listening.address();
  if (address === null || typeof address === 'string') throw new Error('the run has no port to listen on');
  process.env[ADDRESS] = `http://127.0.0.1:${address.port}/${token}`;
}

export async function mochaGlobalTeardown(): Promise<void> {
  broker?.closeAllConnections();
  await new Promise((resolve) => (broker ? broker.close(resolve) : resolve(undefined)));
  for (const stop of stops.reverse()) await stop();
}

const starters: { readonly [K in keyof SharedServers]: () => Promise<SharedServers[K]> } = {
  folder: once(async () => {
    const dir = await makeRunFolder();
    stops.push(() => removeRunFolder(dir));
    return { dir };
  }),
  cluster: once(async () => {
    const dir = join((await starters.folder()).dir, 'cluster');
    const server = await startPostgres({ dir, sync: false });
    await server.stop();
    return { dir };
  }),
  postgres: once(async () => {
    const template = (await starters.cluster()).dir;
    const server = await startPostgres({
      dir: join((await starters.folder()).dir, 'postgres'),
      template,
      settings: {
        max_connections: '400',
        // What it holds need not outlive the run. A test of crashes starts a cluster of its own.
        fsync: 'off',
        full_page_writes: 'off',
        shared_preload_libraries: 'pg_stat_statements',
        // It holds so many statements, and would drop some of whoever counts his for those of all the others.
        'pg_stat_statements.track': 'none',
      },
    });
    stops.push(() => server.stop('immediate'));
    return { ...(await makeTemplate(server)), superuserUrl: server.url() };
  }),
  temporal: once(async () => {
    const server = await startTemporal({
      dir: join((await starters.folder()).dir, 'temporal'),
      home: CLI_HOME,
      env: process.env,
      persistent: false,
      ui: false,
    });
    stops.push(() => server.stop());
    return { address: server.address, cli: server.cli.path };
  }),
};

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
