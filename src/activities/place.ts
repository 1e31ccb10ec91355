import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { ActivityDeps } from './activity-deps.js';
import type { PlannedPlace } from './messages.js';
import { OUTDATED_RETRY_MS } from './served-pipeline.js';

/** The databases of a pipeline, by the names of their environment variables. */
export interface Place {
  readonly database: string;
  /** Absent where the query reads the target's own. */
  readonly source?: string;
}

/** What plans of versions that did not fix it go by. */
const DEFAULT_DATABASE = 'DATABASE_URL';

/** Where a pipeline's fills are at work. */
export function placeOf(pipeline: Pipeline): Place {
  return { database: pipeline.database, source: pipeline.kind === 'sql' ? pipeline.source : undefined };
}

/**
 * Where a run that was planned, perhaps by another worker, is to be ended: as it was planned, whether this worker has its
 * pipeline or not, since a file may be deleted, renamed, broken or changed while the run goes on. Where this worker lacks a
 * URL of that place, by the pipeline's file. Throws `WorkerOutdated` where it has neither.
 */
export function placeOfRun(
  { pipelines, hasUrl }: Pick<ActivityDeps, 'pipelines' | 'hasUrl'>,
  { pipeline: name, database, source }: PlannedPlace & { readonly pipeline: string },
): Place {
  const planned = database === undefined ? undefined : { database, source };
  const served = pipelines.get(name);
  const places = [planned, served && placeOf(served), planned ? undefined : { database: DEFAULT_DATABASE }];
  const place = places.find((each) => each && variables(each).every(hasUrl));
  if (place) return place;
  const missing = variables(planned ?? { database: DEFAULT_DATABASE }).filter((variable) => !hasUrl(variable));
  throw new Failure(
    'WorkerOutdated',
    `A run of ${name} is to be ended, and this worker lacks a URL of where it was planned: ` +
      `${missing.join(', ')} is not set. It is tried again until a worker that has it answers: set what is missing, and start the worker again.`,
    { retryAfterMs: OUTDATED_RETRY_MS },
  );
}

function variables({ database, source }: Place): string[] {
  return source === undefined ? [database] : [database, source];
}
