import type { Window } from '../calendar/calendar.js';
import type { Failure } from '../failure.js';
import type { SqlPipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { toFailure } from './errors.js';
import { lookOnly } from './look-only.js';
import { parameterValues } from './parameter-values.js';

/**
 * Why the role that is logged in may not run the pipeline's query, its `ready` or its `changed`, in this database; undefined where it may.
 * They are planned, read-only, and not run: parsing alone asks for no privilege. What else is wrong with them is not said.
 */
export async function readRefusal(
  database: Database,
  pipeline: SqlPipeline,
  window: Window,
): Promise<Failure | undefined> {
  const queries = [pipeline.query, pipeline.ready?.query, pipeline.changed?.query].filter(
    (query) => query !== undefined,
  );
  try {
    await lookOnly(database, 'repave doctor', pipeline.partition.zone, async (session) => {
      for (const { text, parameters } of queries) {
        await session.query(`EXPLAIN\n${text}\n`, parameterValues(parameters, window));
      }
    });
    return undefined;
  } catch (error) {
    const failure = toFailure(error);
    if (failure.type === 'DatabaseUnavailable') throw failure;
    return failure.type === 'PermissionDenied' ? failure : undefined;
  }
}
