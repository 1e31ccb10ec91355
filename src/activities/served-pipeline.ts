import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { ActivityDeps } from './activity-deps.js';

/** Milliseconds until a worker that has the pipeline may have come up in a rolling deploy. */
export const OUTDATED_RETRY_MS = 10_000;

/** The pipeline a request names. Throws `UnknownPipeline`, or with the reason why it is not served: `InvalidPipeline`, say. */
export async function requestedPipeline(
  { pipelines, broken, registerAgain }: ActivityDeps,
  name: string,
): Promise<Pipeline> {
  const pipeline = pipelines.get(name) ?? (await registerAgain(name));
  if (pipeline) return pipeline;
  const reason = broken.get(name);
  if (reason) throw reason;
  const known = [...pipelines.keys()].sort();
  throw new Failure(
    'UnknownPipeline',
    `No pipeline ${JSON.stringify(name)} is served here: ${known.length > 0 ? `there are ${listed(known)}` : 'there is none'}. ` +
      'Check the name; after adding a file to pipelines/, start the worker again (`repave dev` does so by itself).',
  );
}

/**
 * The pipeline of a run that was planned, perhaps by another worker. One that this worker has not (yet), or has in another
 * version, is `WorkerOutdated`: never final, since the plan proves that it is somewhere.
 */
export async function plannedPipeline(
  { pipelines, registerAgain }: ActivityDeps,
  name: string,
  fingerprint?: string,
): Promise<Pipeline> {
  const pipeline = pipelines.get(name) ?? (await registeredNow(registerAgain(name)));
  if (!pipeline) throw outdated(`This worker has no pipeline ${JSON.stringify(name)} that it can serve`);
  if (fingerprint !== undefined && pipeline.fingerprint !== fingerprint) {
    throw outdated(
      `This worker has ${name} with the fingerprint ${short(pipeline.fingerprint)}, the run was planned with ${short(fingerprint)}`,
    );
  }
  return pipeline;
}

/** What still stands in this worker's way need not stand in another's. */
async function registeredNow(registering: Promise<Pipeline | undefined>): Promise<Pipeline | undefined> {
  try {
    return await registering;
  } catch (error) {
    if (error instanceof Failure && error.final) return undefined;
    throw error;
  }
}

function outdated(what: string): Failure {
  return new Failure(
    'WorkerOutdated',
    `${what}. It is tried again until a worker with the planned version answers; cancel the run and start it anew to use today's.`,
    { retryAfterMs: OUTDATED_RETRY_MS },
  );
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 10).join(', ');
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}

function short(fingerprint: string): string {
  return fingerprint.slice(0, 15);
}
