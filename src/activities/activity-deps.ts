import type { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';

/** What a worker hands to its activities. */
export interface ActivityDeps {
  /** The pipelines this worker serves, by name. */
  readonly pipelines: ReadonlyMap<string, Pipeline>;
  /** Those it found and cannot serve, each with the reason. */
  readonly broken: ReadonlyMap<string, Failure>;
  /**
   * Tries again to name a pipeline in its database's ledger, where that alone has failed so far, and serves it from then on;
   * undefined for any other name. Throws what still stands in the way.
   */
  readonly registerAgain: (name: string) => Promise<Pipeline | undefined>;
  /**
   * Hands `use` the pipeline's database, opened and checked. Throws what it throws; `DatabaseUnavailable` where it cannot be
   * reached, at once where it failed just now.
   */
  readonly withDatabase: <Result>(pipeline: Pipeline, use: (database: Database) => Promise<Result>) => Promise<Result>;
}
