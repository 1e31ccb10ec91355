import type { BackfillHandle } from '../../src/client.js';
import type { Progress } from '../../src/contract.js';

/** How far a backfill is, by a worker's word; undefined where none has answered in time, as on a slow machine. */
export async function progressOf(backfill: BackfillHandle): Promise<Progress | undefined> {
  try {
    return await backfill.progress();
  } catch (error) {
    if (error instanceof Error && error.name === 'NoAnswer') return undefined;
    throw error;
  }
}
