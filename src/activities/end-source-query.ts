import { Failure } from '../failure.js';
import { endRun } from '../warehouse/end-fill.js';
import type { ActivityDeps } from './activity-deps.js';
import type { Place } from './place.js';

/**
 * Ends what a run of the named pipeline still reads from its source, whichever worker began it. A source that cannot be reached keeps
 * nobody from ending: its server ends the query of a connection that is gone.
 */
export async function endSourceQuery(deps: ActivityDeps, place: Place, pipeline: string, run: string): Promise<void> {
  try {
    await deps.withSource(place, async (source) => {
      if (source) await endRun(source, pipeline, run);
    });
  } catch (error) {
    if (!(error instanceof Failure) || error.type !== 'DatabaseUnavailable') throw error;
  }
}
