import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PostgresServer, startPostgres } from '../src/dev/postgres.js';
import { startTemporal } from '../src/dev/temporal-server.js';
import { connectRepave, type RepaveClient } from '../src/client.js';
import { loadSettings } from '../src/settings.js';
import { createLog } from '../src/telemetry/log.js';
import { runWorker } from '../src/worker/run-worker.js';

/** Of the bench's own worker. */
export const TASK_QUEUE = 'bench';

/** What a bench has to itself. */
export interface Servers {
  /** For its project; gone with the servers. */
  readonly folder: string;
  readonly postgres: PostgresServer;
  readonly temporalAddress: string;
}

/** Hands `use` a PostgreSQL and a Temporal server of the bench's own, and stops both however that ends. */
export async function withServers(use: (servers: Servers) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'repave-bench-'));
  // PostgreSQL's own user must be able to enter it.
  await chmod(folder, 0o711);
  const postgres = await startPostgres({ dir: join(folder, 'postgres') });
  const temporal = await startTemporal({
    dir: join(folder, 'temporal'),
    home: join(process.cwd(), '.repave', 'temporal-cli'),
    env: process.env,
    persistent: false,
    ui: false,
  });
  try {
    await use({ folder, postgres, temporalAddress: temporal.address });
  } finally {
    await Promise.all([postgres.stop('immediate'), temporal.stop()]);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Hands `use` a client beside a worker of the bench's project, in this process, and stops both. */
export async function withWorker(
  { folder, postgres, temporalAddress }: Servers,
  use: (client: RepaveClient) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const own = { DATABASE_URL: postgres.url(), TEMPORAL_ADDRESS: temporalAddress, REPAVE_TASK_QUEUE: TASK_QUEUE };
  const settings = loadSettings({ ...own, ...env }, folder);
  const stopping = new AbortController();
  const worker = runWorker(settings, stopping.signal, createLog('error'));
  try {
    const client = await connectRepave({ settings });
    await use(client);
    await client.close();
  } finally {
    stopping.abort();
    await worker;
  }
}
