import type { Granularity } from '../calendar/calendar.js';
import type { RowSource } from './pipeline.js';

/** Marks what `definePipeline` has returned; by name, so that a second copy of this package is no stranger. */
const MARK = Symbol.for('repave.pipeline');

/** One check of a pipeline, run inside the fill's transaction: a failed one leaves the old rows. */
export type CheckSetting =
  /** How many rows a partition may have. */
  | { readonly rows: { readonly min?: number; readonly max?: number } }
  /** No two rows of a partition are equal in these columns. */
  | { readonly unique: readonly string[] }
  /** These columns hold no NULL. */
  | { readonly not_null: readonly string[] };

/** What `definePipeline` takes: how one table's rows are got, one partition at a time. */
export interface PipelineDefinition {
  /** The table that is filled: `exchange_rates`, `mart.exchange_rates`. Names are exact, nothing is folded to lower case. */
  readonly target: string;
  readonly partition: {
    /** The date, timestamp or timestamptz column by which the target is cut. */
    readonly column: string;
    readonly by: Granularity;
    /** IANA time zone of the partitions' limits. Default `UTC`. */
    readonly zone?: string;
  };
  /** Key of the first partition there can be. */
  readonly start?: string;
  /** The columns written. Default: those of the first row. */
  readonly columns?: readonly string[];
  readonly checks?: readonly CheckSetting[];
  /** Partitions at once in one backfill, 1 to 100. Default 4. */
  readonly concurrency?: number;
  readonly retry?: {
    /** Tries of what the pipeline itself does wrong. Default 3. */
    readonly attempts?: number;
    /** How long the world's faults are retried, from the first attempt. Default `24h`. */
    readonly giveUpAfter?: string;
  };
  /** For one attempt's own work: `90s`, `15m`, `2h`, `1d`. Default `1h`. */
  readonly timeout?: string;
  /** Partitions before those of `last` that are filled again with them. Default 0. */
  readonly lookback?: number;
  /** Stands for the code in the fingerprint: partitions are outdated when it changes, and not when the code does. */
  readonly version?: string | number;
  /** False: a fill that would empty a partition that has rows fails. Default true: it is a warning. */
  readonly allowEmpty?: boolean;
  /** The environment variable that holds the target database's URL. Default `DATABASE_URL`. */
  readonly database?: string;
  /**
   * Gives the partition's rows, as objects by column name. It may be called again for the same partition, and should stop
   * when `signal` is aborted.
   */
  readonly rows: RowSource;
}

/**
 * Declares a pipeline: `export default definePipeline({ … })` in a file of `pipelines/`. The settings are checked when the
 * file is loaded.
 */
export function definePipeline(definition: PipelineDefinition): PipelineDefinition {
  return Object.freeze({ ...definition, [MARK]: true });
}

/** Whether a value came out of {@link definePipeline}. */
export function isDefinedPipeline(value: unknown): value is PipelineDefinition {
  return typeof value === 'object' && value !== null && MARK in value;
}
