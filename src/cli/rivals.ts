import { Failure } from '../failure.js';
import type { Pipeline, Scope } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';
import { registeredPipelines } from '../warehouse/ledger.js';
import { ledgerState } from '../warehouse/migrate.js';
import { changedGrid, claimOf, registeredClaim, rivals } from './target-rivals.js';

/**
 * Why workers would refuse the pipeline, or take its target's grid first, by what the ledger has registered: sentences; none
 * where there is no ledger, or it may not be read.
 */
export async function registeredRivals(
  database: Database,
  pipeline: Pipeline,
  target: string,
  scope: Scope,
): Promise<string[]> {
  try {
    if ((await ledgerState(database)) !== 'current') return [];
    const registered = await registeredPipelines(database);
    const own = claimOf(pipeline, '', target, scope);
    const others = registered
      .filter(({ name }) => name !== pipeline.formerly)
      .map((other) => ({ ...registeredClaim(other, ''), registered: false }));
    const grid = changedGrid(
      own,
      registered.find(({ name }) => name === pipeline.name),
    );
    return [...rivals(own, others, pipeline.formerly), ...grid.problems].map(({ message }) => message);
  } catch (error) {
    if (error instanceof Failure && error.type === 'PermissionDenied') return [];
    throw error;
  }
}
