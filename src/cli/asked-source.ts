import type { BackfillInput } from '../contract.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { asksSource } from '../plan/asks-source.js';
import type { PlanningFacts } from '../plan/resolve-plan.js';
import type { Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { movedPartitions } from '../warehouse/moved-partitions.js';
import { withSourceOf } from './database.js';

/** Asks the source which of some partitions of a target's database have moved. */
export type AskedSource = (database: Database) => NonNullable<PlanningFacts['changed']>;

/**
 * How a request's partitions are asked of their source: by the file here, since the ledger has no `changed`; undefined where they
 * are not. Throws `InvalidInput` where they are to be and nothing says how.
 */
export function askedSource(
  settings: Settings,
  input: BackfillInput,
  file: Pipeline | Failure,
): AskedSource | undefined {
  if (file instanceof Failure) {
    if (!input.only?.includes('changed')) return undefined;
    throw new Failure(
      'InvalidInput',
      `only has changed, which is asked of the source as the pipeline's file says, and there is no file here: ${file.message} ` +
        'Plan where the file is, or leave changed out.',
    );
  }
  if (!asksSource(input, file)) return undefined;
  // Ctrl-C ends the process, and the server the query of a client that is gone.
  const { signal } = new AbortController();
  return (database) => (filled) =>
    withSourceOf(settings, file, (source) => movedPartitions({ database, source, signal }, file, filled));
}
