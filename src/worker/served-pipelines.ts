import { join } from 'node:path';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { Log } from '../telemetry/log.js';
import type { Database } from '../warehouse/database.js';
import { registerPipeline } from '../warehouse/ledger.js';

/** The pipelines of a worker: those it serves, and those it found and cannot, each with the reason. */
export interface ServedPipelines {
  readonly pipelines: Map<string, Pipeline>;
  readonly broken: Map<string, Failure>;
  /** Of the broken ones those whose files are right, but which their database's ledger did not take. */
  readonly unregistered: Map<string, Pipeline>;
}

/**
 * Reads a project's pipelines. One that cannot be served is logged and stops none of the others. Throws `InvalidInput` where
 * none can, since the URL of every database is missing: that is the worker's set-up, not a pipeline's.
 */
export async function readPipelines(settings: Settings, log: Log): Promise<ServedPipelines> {
  const { pipelines, broken } = await loadPipelines(join(settings.project, 'pipelines'));
  const served: ServedPipelines = { pipelines: new Map(pipelines), broken: new Map(), unregistered: new Map() };
  for (const [name, reason] of broken) refuse(served, name, reason, log);
  let missing: Failure | undefined;
  for (const pipeline of pipelines.values()) {
    try {
      databaseUrl(settings, pipeline.database);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      missing = error;
      refuse(served, pipeline.name, new Failure('InvalidPipeline', error.message), log);
    }
  }
  if (missing && served.pipelines.size === 0) throw missing;
  return served;
}

/** Names the pipelines of one database in its ledger. One that another pipeline stands in the way of is not served. */
export async function registerServed(
  served: ServedPipelines,
  settings: Settings,
  database: Database,
  url: string,
  log: Log,
): Promise<void> {
  for (const pipeline of [...served.pipelines.values()]) {
    if (databaseUrl(settings, pipeline.database) !== url) continue;
    try {
      await registerPipeline(database, pipeline);
    } catch (error) {
      if (!(error instanceof Failure) || !error.final) throw error;
      refuse(served, pipeline.name, error, log);
      served.unregistered.set(pipeline.name, pipeline);
    }
  }
}

/**
 * Tries again to name in its ledger a pipeline that could not be before, perhaps for want of its target, and serves it from
 * then on. Undefined where the name is no such pipeline's. Throws what stands in the way now.
 */
export async function registerAgain(
  served: ServedPipelines,
  name: string,
  register: (pipeline: Pipeline) => Promise<void>,
  log: Log,
): Promise<Pipeline | undefined> {
  const pipeline = served.unregistered.get(name);
  if (!pipeline) return undefined;
  await register(pipeline);
  served.unregistered.delete(name);
  served.broken.delete(name);
  served.pipelines.set(name, pipeline);
  log.info({ pipeline: name }, `Pipeline ${name} is served now`);
  return pipeline;
}

function refuse(served: ServedPipelines, name: string, reason: Failure, log: Log): void {
  served.pipelines.delete(name);
  served.broken.set(name, reason);
  log.error({ pipeline: name, error: reason }, `Pipeline ${name} is not served: ${reason.message}`);
}
