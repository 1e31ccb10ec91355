import type { RepaveClient } from '../client.js';
import type { BackfillView } from './backfill-state.js';
import { runningBy } from './sights.js';
import { soon } from './temporal-client.js';

/** Milliseconds that a worker may take to say what runs: whoever looks is not to wait for one that is not there. */
const ANSWER_MS = 2_000;

/**
 * A backfill that runs, with what only its run knows: what it does now, what waits behind the others, at which rate. Counts stay
 * the ledger's. Where no worker answers at once, what runs is what Temporal says, and that is said.
 */
export async function seenByWorker(repave: RepaveClient, view: BackfillView): Promise<BackfillView> {
  const handle = repave.handle(view.id);
  const [answer, attempts] = await Promise.all([
    handle.progress({ signal: AbortSignal.timeout(ANSWER_MS) }).catch(() => undefined),
    soon(repave, () => handle.attempts()).catch(() => []),
  ]);
  const { filled, failed, rows, failures } = view.progress;
  if (answer) return { ...view, attempts, progress: { ...answer, filled, failed, rows, failures } };
  return {
    ...view,
    attempts,
    unanswered: 'no worker answers',
    progress: { ...view.progress, running: runningBy(attempts) },
  };
}
