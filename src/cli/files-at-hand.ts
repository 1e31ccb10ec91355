import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Settings } from '../settings.js';
import { pipelinesFolder } from './database.js';

/** The project's pipelines; none where there are no files at hand, as whoever only looks may have none. */
export async function filesAtHand(settings: Settings): Promise<Awaited<ReturnType<typeof loadPipelines>>> {
  try {
    return await loadPipelines(pipelinesFolder(settings));
  } catch (error) {
    if (error instanceof Failure) return { pipelines: new Map(), broken: new Map() };
    throw error;
  }
}
