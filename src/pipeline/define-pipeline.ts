import type { Granularity } from '../calendar/calendar.js';
import type { ChangedFunction, ReadyFunction, RowSource } from './pipeline.js';

/** Marks what `definePipeline` has returned; by name, so that a second copy of this package is no stranger. */
const MARK = Symbol.for('repave.pipeline');

type Value = string | number | boolean;

/** One check of a pipeline, run inside the fill's transaction: a failed one leaves the old rows, unless its severity is `warn`. */
export type CheckSetting = { readonly severity?: 'fail' | 'warn' } &
  /** How many rows a partition may have. */
  (
    | { readonly rows: { readonly min?: number; readonly max?: number } }
    /** No two rows of a partition are equal in these columns. */
    | { readonly unique: readonly string[] }
    /** These columns hold no NULL. */
    | { readonly not_null: readonly string[] }
    /** The number of rows is within so many percent of the partition's last fill. */
    | { readonly change: { readonly maxPercent: number } }
    /** Each column holds one of its values, or NULL. */
    | { readonly accepted: Readonly<Record<string, readonly Value[]>> }
    /** Each column lies between its bounds, both included, or is NULL. */
    | { readonly range: Readonly<Record<string, { readonly min?: Value; readonly max?: Value }>> }
    /** A query that must give no row. It sees the new rows. */
    | { readonly sql: string; readonly name?: string }
  );

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
  /** The part of the target's rows that is this pipeline's, by equality: `{ tenant: 'acme' }`. Default: all of them. */
  readonly scope?: Readonly<Record<string, Value>>;
  /** Write nothing where the new rows equal the old. Default false. */
  readonly skipUnchanged?: boolean;
  /** Make a missing partition of a declaratively partitioned target. Default false. */
  readonly create?: boolean;
  /** Neighbouring partitions that one child workflow fills, one after the other, 1 to 100. Default 1. */
  readonly batch?: number;
  /** The name that this pipeline had: its ledger is carried over. */
  readonly formerly?: string;
  /** When it is filled and healed by itself, once `repave deploy` has brought Temporal in line: a cron expression, or with more. */
  readonly schedule?:
    | string
    | {
        readonly cron: string;
        /** Default: the partitions' own. */
        readonly zone?: string;
        /** The newest finished partitions that each run fills. Default 1. */
        readonly last?: number;
        /** Partitions before those. Default: the pipeline's `lookback`. */
        readonly lookback?: number;
        /** Partitions among which what is missing, failed or outdated is filled after each run. Default: none. */
        readonly heal?: number;
      };
  /** Pipelines of the same database whose partitions that overlap must be filled first. */
  readonly after?: readonly string[];
  /** Keep a checksum of each partition's rows, by which `repave verify` finds those that were changed. Default false. */
  readonly checksum?: boolean;
  /** Gives the version of a partition's source, asked before its rows are read: `only: ['changed']` finds where it is another now. */
  readonly changed?: ChangedFunction;
  /** False: rows go straight into the transaction instead of through a file, for a source that cannot stall. Default true. */
  readonly stage?: boolean;
  /** Asked before each fill: whether the source has the partition; or, not yet, the delay until it is asked again: `10m`. */
  readonly ready?: ReadyFunction;
  /**
   * Gives the partition's rows, as objects by column name, or, with `columns`, as arrays in their order. It may be called again for the same partition, and should stop
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
