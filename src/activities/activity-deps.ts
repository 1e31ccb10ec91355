import type { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Hook } from '../telling/hook.js';
import type { Database } from '../warehouse/database.js';
import type { Place } from './place.js';

/** What a worker hands to its activities. */
export interface ActivityDeps {
  /** The pipelines this worker serves, by name. */
  readonly pipelines: ReadonlyMap<string, Pipeline>;
  /** Those it found and cannot serve, each with the reason. */
  readonly broken: ReadonlyMap<string, Failure>;
  /** Of those the ones whose files are right, but which their database's ledger has not taken so far. */
  readonly unregistered: ReadonlyMap<string, Pipeline>;
  /**
   * Tries again to name a pipeline in its database's ledger, where that alone has failed so far, and serves it from then on;
   * undefined for any other name. Throws what still stands in the way.
   */
  readonly registerAgain: (name: string) => Promise<Pipeline | undefined>;
  /**
   * Hands `use` the pipeline's database, opened and checked. Throws what it throws; `DatabaseUnavailable` where it cannot be
   * reached, at once where it failed just now.
   */
  readonly withDatabase: <Result>(
    pipeline: Pick<Pipeline, 'database'>,
    use: (database: Database) => Promise<Result>,
  ) => Promise<Result>;
  /** Hands `use` the database that a query reads, where that is another than the target's. Throws as `withDatabase`. */
  readonly withSource: <Result>(
    pipeline: Pick<Place, 'source'>,
    use: (source: Database | undefined) => Promise<Result>,
  ) => Promise<Result>;
  /** Whom this worker tells what people act on; none where nobody is to be told. */
  readonly hooks: readonly Hook[];
  /** Whether this worker has the URL of a database, by the name of its environment variable. */
  readonly hasUrl: (variable: string) => boolean;
  /** Whether the namespace has the contract's search attributes; an unknown one would fail a workflow's task for ever. */
  readonly hasSearchAttributes: () => Promise<boolean>;
}
