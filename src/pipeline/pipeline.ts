import type { Granularity, Window } from '../calendar/calendar.js';

/** Parameters that a query may name. `:start`, `:end` are timestamptz, `:date`, `:end_date` dates, `:key` text. */
export const PARAMETERS = ['start', 'end', 'date', 'end_date', 'key'] as const;
export type ParameterName = (typeof PARAMETERS)[number];

/** A query ready to send: its text with each parameter put as a cast placeholder, no trailing semicolon. */
export interface Query {
  /** `… WHERE d >= ($1::pg_catalog.date) …`. Ends without `;`; may end in a comment, so put a newline behind it. */
  readonly text: string;
  /** Names of $1, $2, … in order. */
  readonly parameters: readonly ParameterName[];
}

export type Check =
  | { readonly kind: 'rows'; readonly min?: number; readonly max?: number }
  | { readonly kind: 'unique'; readonly columns: readonly string[] }
  | { readonly kind: 'not_null'; readonly columns: readonly string[] };

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

export type Row = Readonly<Record<string, unknown>>;
export type RowSource = (context: RowsContext) => AsyncIterable<Row> | Iterable<Row>;

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
  /** SHA-256 hex, prefixed `v1:`, over what decides a partition's content. */
  readonly fingerprint: string;
}

export interface SqlPipeline extends PipelineSettings {
  readonly kind: 'sql';
  readonly query: Query;
}

export interface TypeScriptPipeline extends PipelineSettings {
  readonly kind: 'typescript';
  readonly rows: RowSource;
  /** The columns written; absent: the first row's keys. */
  readonly columns?: readonly string[];
}

/** How one target table is filled, read and checked from one file. */
export type Pipeline = SqlPipeline | TypeScriptPipeline;

export type { Window };
