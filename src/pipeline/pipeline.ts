import type { Granularity, Window } from '../calendar/calendar.js';

/** Parameters that a query may name. `:start`, `:end` are timestamptz, `:date`, `:end_date` dates, `:key` text. */
export const PARAMETERS = ['start', 'end', 'date', 'end_date', 'key'] as const;
export type ParameterName = (typeof PARAMETERS)[number];

/** A query ready to send: its text with each parameter put as a cast placeholder, no trailing semicolon. */
export interface Query {
  /** `… WHERE d >= ($1::pg_catalog.date) …`. Ends without `;`; may end in a comment, so put a newline behind it. */
  readonly text: string;
  /**
   * Names of $1, $2, … in order. A query that runs within another's statement counts on behind that one's: its list then
   * begins with the other's.
   */
  readonly parameters: readonly ParameterName[];
  /** The text around its parameters, for what takes no bound values (COPY): one piece more than `slots`. */
  readonly pieces: readonly string[];
  /** The parameter between each two pieces. */
  readonly slots: readonly { readonly name: ParameterName; readonly type: string }[];
}

/** A condition that a partition's new rows must meet before they are seen. */
export type Check = {
  /** `warn`: recorded in the ledger and let through. Default `fail`. */
  readonly severity?: 'fail' | 'warn';
} & (
  | { readonly kind: 'rows'; readonly min?: number; readonly max?: number }
  /** Rows, against those of the partition's last fill. */
  | { readonly kind: 'change'; readonly maxPercent: number }
  | { readonly kind: 'unique'; readonly columns: readonly string[] }
  | { readonly kind: 'not_null'; readonly columns: readonly string[] }
  /** Values in the text form of the column's type; NULL passes. */
  | { readonly kind: 'accepted'; readonly column: string; readonly values: readonly string[] }
  /** Both ends included, in the text form of the column's type; NULL passes. */
  | { readonly kind: 'range'; readonly column: string; readonly min?: string; readonly max?: string }
  /** The column's sum is the one value of a query over the source, read in the snapshot that the rows are read in. */
  | { readonly kind: 'sum'; readonly column: string; readonly equals: Query }
  /** A query that must give no row; it may read the target, whose new rows it sees. */
  | { readonly kind: 'sql'; readonly query: Query; readonly name?: string }
);

/** Columns and the values that a pipeline's own rows have there, in the text form of their types. */
export type Scope = Readonly<Record<string, string>>;

/** A table as a pipeline names it, identifiers unquoted (`"Order"` gives `Order`). */
export interface TableName {
  readonly schema?: string;
  readonly table: string;
}

/** What the user's `rows` gets. */
export interface RowsContext {
  readonly key: string;
  readonly window: { readonly start: string; readonly end: string; readonly date: string; readonly endDate: string };
  /** Aborted when the fill is cancelled, timed out or its worker stops. */
  readonly signal: AbortSignal;
}

/** A row by column name. */
export type Row = Readonly<Record<string, unknown>>;
/** A row's values in the order of the pipeline's `columns`. */
export type RowValues = readonly unknown[];
export type RowSource = (context: RowsContext) => AsyncIterable<Row | RowValues> | Iterable<Row | RowValues>;

/** When a pipeline is filled and healed by itself. */
export interface PipelineSchedule {
  /** Five fields, as in crontab(5): `15 2 * * *`. */
  readonly cron: string;
  /** IANA zone in which the cron is read. */
  readonly zone: string;
  /** The newest finished partitions that each run fills. */
  readonly last: number;
  /** Partitions before those. Absent: the pipeline's. */
  readonly lookback?: number;
  /** Partitions among which what is missing, failed or outdated is filled after each run. Absent: none are healed. */
  readonly heal?: number;
}

/** What pipelines of both kinds have. */
export interface PipelineSettings {
  readonly name: string;
  /** Absolute path of the file it was read from. */
  readonly file: string;
  readonly target: TableName;
  readonly partition: { readonly column: string; readonly by: Granularity; readonly zone: string };
  /** Key of the first partition there can be. */
  readonly start?: string;
  readonly checks: readonly Check[];
  readonly concurrency?: number;
  readonly retry: { readonly attempts: number; readonly giveUpAfterMs: number };
  /** For one attempt's own work. */
  readonly timeoutMs: number;
  readonly lookback: number;
  readonly version?: string;
  /** False: a fill that empties a non-empty window is `CheckFailed`. Default true: the warning `emptied`. */
  readonly allowEmpty: boolean;
  /** The environment variable that holds the target database's URL. */
  readonly database: string;
  /** The part of the target's rows that is this pipeline's; absent: all of them. */
  readonly scope?: Scope;
  /** Write nothing where the new rows equal the old. */
  readonly skipUnchanged?: boolean;
  /** Make the target's missing partition, where it is declaratively partitioned. */
  readonly create?: boolean;
  /** Neighbouring partitions that one child workflow fills, one after the other. Absent: 1. */
  readonly batch?: number;
  /** A name that the pipeline had: its ledger is carried over. */
  readonly formerly?: string;
  readonly schedule?: PipelineSchedule;
  /** Pipelines of the same database whose partitions that overlap must be filled first. */
  readonly after?: readonly string[];
  /** Keep a checksum of each partition's rows, for `verify`. */
  readonly checksum?: boolean;
  /** SHA-256 hex, prefixed `v1:`, over what decides a partition's content. */
  readonly fingerprint: string;
}

export interface SqlPipeline extends PipelineSettings {
  readonly kind: 'sql';
  readonly query: Query;
  /** The environment variable that holds the URL of the PostgreSQL where the query runs; absent: the target's own. */
  readonly source?: string;
  /** Asked before a fill, where the query runs. */
  readonly ready?: ReadyQuery;
  /** Asked before a fill, and for plans that want to know, where the query runs. */
  readonly changed?: ChangedQuery;
}

/** A query of one value, the version of a window's source: it is filled again, where asked, once that is another. It does not read the target. */
export interface ChangedQuery {
  readonly query: Query;
  /** Of the text that the file has: what another query answers is another version, though it says the same. */
  readonly hash: string;
  /** Of `changed: rows`: the names of those whose rows it counts, as SQL text. They must be tables, since nothing else has such rows. */
  readonly tables?: readonly string[];
}

/** Gives a version of a window's source: it is filled again, where asked, once that is another. */
export type ChangedFunction = (context: RowsContext) => string | number | bigint | Promise<string | number | bigint>;

/** A query of one boolean: anything but true, and the fill is tried again after the delay. */
export interface ReadyQuery {
  readonly query: Query;
  readonly retryAfterMs: number;
}

/** Asked before a fill: true; or false, to be tried again after a minute; or the delay, such as `10m`. */
export type ReadyFunction = (context: RowsContext) => boolean | string | Promise<boolean | string>;

export interface TypeScriptPipeline extends PipelineSettings {
  readonly kind: 'typescript';
  readonly rows: RowSource;
  /** The columns written; absent: the first row's keys. */
  readonly columns?: readonly string[];
  /** False: rows go straight into the transaction's COPY instead of through the spool file. */
  readonly stage?: boolean;
  readonly ready?: ReadyFunction;
  readonly changed?: ChangedFunction;
}

/** How one target table is filled, read and checked from one file. */
export type Pipeline = SqlPipeline | TypeScriptPipeline;

export type { Window };
