import type { RepaveClient } from '../client.js';
import type { Settings } from '../settings.js';
import type { Output } from './output.js';

/**
 * Hands `use` a client of the settings' Temporal server and closes it however that ends. Throws `ServerUnreachable` where
 * the server does not answer. The client is loaded here alone, so that commands which need no Temporal start at once.
 */
export async function withClient<Result>(
  settings: Settings,
  use: (repave: RepaveClient) => Promise<Result>,
): Promise<Result> {
  const { connectRepave } = await import('../client.js');
  const repave = await connectRepave({ settings });
  try {
    return await use(repave);
  } finally {
    await repave.close();
  }
}

/** Milliseconds that Temporal may take to be connected to, and then to answer {@link soon}, where the ledger's word will do. */
const PATIENCE_MS = 2_000;

/**
 * {@link withClient} for a command that answers from the ledger, and asks Temporal only for what that knows besides. It throws
 * `ServerUnreachable` where it is not connected within 2 s, or what is asked {@link soon} is not answered within 2 s: whether
 * the server is away or slow is not known then.
 */
export async function withClientSoon<Result>(
  settings: Settings,
  use: (repave: RepaveClient) => Promise<Result>,
): Promise<Result> {
  const [{ RepaveClient }, { connectTemporal }, { temporalLate }, { temporalServer }] = await Promise.all([
    import('../client.js'),
    import('../temporal/connect.js'),
    import('../temporal/server-unreachable.js'),
    import('../temporal/temporal-server.js'),
  ]);
  const server = temporalServer(settings);
  const client = await connectTemporal(server, PATIENCE_MS);
  const repave = new RepaveClient(client, settings.taskQueue, true);
  try {
    return await use(repave);
  } catch (error) {
    throw isLate(error) ? temporalLate(server.address, PATIENCE_MS) : error;
  } finally {
    await repave.close();
  }
}

/** Asks Temporal what must be answered within 2 s. */
export function soon<Answer>({ temporal }: RepaveClient, ask: () => Promise<Answer>): Promise<Answer> {
  return temporal.withDeadline(Date.now() + PATIENCE_MS, ask);
}

/** Whether somebody has named a Temporal server, beside which the default address would be a guess. */
export async function isTemporalNamed(settings: Settings): Promise<boolean> {
  const { temporalServer } = await import('../temporal/temporal-server.js');
  return temporalServer(settings).named;
}

/** gRPC's DEADLINE_EXCEEDED, by name and number: the client's module is loaded only where it is needed. */
function isLate(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (error as { code?: unknown }).code === 4 || (error.cause !== undefined && isLate(error.cause));
}

/** What to say where no worker polls: nothing is lost, everything waits. Undefined where one does. */
export async function noWorker(repave: RepaveClient): Promise<string | undefined> {
  const { workflows, fills, control } = await repave.pollers();
  if (workflows > 0 && fills > 0 && control > 0) return undefined;
  return `No worker polls the task queue ${repave.taskQueue}: what was started waits for one. Start it with \`repave worker\`.`;
}

/** Milliseconds after which it is said that no worker polls. */
const WORKER_WAIT_MS = 5_000;

/** Says after 5 s that no worker polls, where that is so then; unless what it returns is called before. */
export function sayIfNoWorker(output: Pick<Output, 'say'>, repave: RepaveClient): () => void {
  const look = setTimeout(() => {
    noWorker(repave).then(
      (said) => said !== undefined && output.say(said),
      // Waiting itself shows where Temporal is gone.
      () => undefined,
    );
  }, WORKER_WAIT_MS);
  return () => clearTimeout(look);
}
