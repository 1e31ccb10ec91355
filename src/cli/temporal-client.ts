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
