import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId } from '../warehouse/ledger.js';
import type { ActivityDeps } from './activity-deps.js';

/**
 * Hands `use` the pipeline's database where it is the one a run was planned against. Throws `WrongLedger` where it is another:
 * what is said of a run there, such as that nothing of it is left, would be said of the wrong place.
 */
export async function withPlannedDatabase<Result>(
  deps: ActivityDeps,
  pipeline: Pick<Pipeline, 'database'>,
  ledger: string,
  use: (database: Database) => Promise<Result>,
): Promise<Result> {
  return deps.withDatabase(pipeline, async (database) => {
    const here = await ledgerId(database, { orNewer: true });
    if (here !== ledger) {
      throw new Failure(
        'WrongLedger',
        `This worker’s database has the ledger ${here}, and the run was planned against ${ledger}: two installations poll one ` +
          'task queue. Give each its own REPAVE_TASK_QUEUE.',
        { retryAfterMs: 10_000 },
      );
    }
    return use(database);
  });
}
