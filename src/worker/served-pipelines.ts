import { join } from 'node:path';
import { Failure } from '../failure.js';
import { afterProblems, orderOf, upstreamOf } from '../pipeline/after.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { Log } from '../telemetry/log.js';
import type { Database } from '../warehouse/database.js';
import type { CarriedOver } from '../warehouse/carry-over.js';
import { type RegisteredPipeline, registeredPipelines, registerPipeline } from '../warehouse/ledger.js';
import { zoneDisagreement } from '../warehouse/zone-agreement.js';

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
      if (pipeline.kind === 'sql' && pipeline.source !== undefined) databaseUrl(settings, pipeline.source);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      missing = error;
      refuse(served, pipeline.name, new Failure('InvalidPipeline', error.message), log);
    }
  }
  if (missing && served.pipelines.size === 0) throw missing;
  return served;
}

/**
 * Names the pipelines of one database in its ledger. One that another pipeline stands in the way of is not served; neither is
 * one whose target's fills still go by its old calendar, until it is asked for again.
 */
export async function registerServed(
  served: ServedPipelines,
  settings: Settings,
  database: Database,
  url: string,
  log: Log,
): Promise<void> {
  const own = [...served.pipelines.values()].filter(({ database: name }) => databaseUrl(settings, name) === url);
  const registered = await registeredPipelines(database);
  const disordered = own.flatMap((pipeline) => {
    const reason = disorderOf(served, pipeline, registered);
    return reason ? [{ pipeline, reason }] : [];
  });
  for (const { pipeline, reason } of disordered) {
    refuse(served, pipeline.name, reason, log);
    // What it comes after may yet be registered, by the worker of another project.
    served.unregistered.set(pipeline.name, pipeline);
  }
  // Those that come first are registered first: what was the other way round before is no circle then.
  const order = upstreamOf(own.map(({ name }) => name).sort(), served.pipelines).reverse();
  for (const pipeline of order.flatMap((name) => own.find((each) => each.name === name) ?? [])) {
    if (!served.pipelines.has(pipeline.name)) continue;
    try {
      const differing = await zoneDisagreement(database, pipeline.partition.zone);
      if (differing) log.warn({ pipeline: pipeline.name }, differing);
      tellCarried(pipeline, await registerPipeline(database, pipeline), log);
    } catch (error) {
      if (!(error instanceof Failure) || !(error.final || error.type === 'Conflict')) throw error;
      refuse(served, pipeline.name, error, log);
      served.unregistered.set(pipeline.name, pipeline);
    }
  }
}

/** Why a pipeline's `after` cannot be, if so. Names that no file has may be the ledger's: of other projects. */
export function disorderOf(
  { pipelines, broken, unregistered }: ServedPipelines,
  pipeline: Pipeline,
  registered: readonly RegisteredPipeline[],
): Failure | undefined {
  const files = [...[...broken.keys()].map((name) => ({ name })), ...unregistered.values(), ...pipelines.values()];
  const all = orderOf([...files, pipeline], registered);
  const problems = pipeline.after ? afterProblems(pipeline, all) : [];
  if (problems.length === 0) return undefined;
  return new Failure('InvalidPipeline', `pipeline ${pipeline.name}: ${problems.join(' ')}`);
}

/** What is being registered again. */
const registering = new WeakMap<Pipeline, Promise<Pipeline>>();

/**
 * Tries again to name in its ledger a pipeline that could not be before, perhaps for want of its target, and serves it from
 * then on. Undefined where the name is no such pipeline's. Throws what stands in the way now.
 */
export async function registerAgain(
  served: ServedPipelines,
  name: string,
  register: (pipeline: Pipeline) => Promise<CarriedOver | undefined>,
  log: Log,
): Promise<Pipeline | undefined> {
  const pipeline = served.unregistered.get(name);
  if (!pipeline) return undefined;
  const again = async (): Promise<Pipeline> => {
    tellCarried(pipeline, await register(pipeline), log);
    served.unregistered.delete(name);
    served.broken.delete(name);
    served.pipelines.set(name, pipeline);
    log.info({ pipeline: name }, `Pipeline ${name} is served now`);
    return pipeline;
  };
  // Once for all who ask meanwhile: it may wait, and holds a connection then.
  const running = registering.get(pipeline) ?? again().finally(() => registering.delete(pipeline));
  registering.set(pipeline, running);
  return running;
}

function tellCarried({ name }: Pipeline, carried: CarriedOver | undefined, log: Log): void {
  if (!carried) return;
  const { former, partitions, unfinished } = carried;
  log.info({ pipeline: name, former, partitions }, `${partitions} partitions of ${former} are ${name}’s now`);
  if (unfinished.length === 0) return;
  log.warn(
    { pipeline: name, former, backfills: unfinished },
    `Backfills of ${former} have not ended, and fill nothing under that name any more: cancel them (${unfinished.map((id) => `repave cancel ${id}`).join('; ')}), and start what is left of them as ${name}`,
  );
}

function refuse(served: ServedPipelines, name: string, reason: Failure, log: Log): void {
  served.pipelines.delete(name);
  served.broken.set(name, reason);
  log.error({ pipeline: name, error: reason }, `Pipeline ${name} is not served: ${reason.message}`);
}
