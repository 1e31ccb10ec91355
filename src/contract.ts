/**
 * What callers and workflows share: names, inputs, results and failure types. Types and constants only, so that any
 * program may import it (as `repave/contract`) without bringing in a database driver or the Temporal worker.
 */

/** The task queue of workflows and fills where `REPAVE_TASK_QUEUE` does not name another. */
export const DEFAULT_TASK_QUEUE = 'repave';

/** The queue of everything that waits, plans or validates, so that it never starves behind fills, nor they behind it. */
export function controlQueue(taskQueue: string): string {
  return `${taskQueue}-control`;
}

/** Registered workflow types. Part of the API: other systems start them by these names. */
export const WORKFLOW_TYPES = { backfill: 'backfill', partition: 'partition' } as const;

/** Query of a running backfill, answered with a {@link Progress}. */
export const PROGRESS_QUERY = 'progress';

/** What a partition needs of the world: which of several states it is in. Exactly one holds, the first that fits. */
export const PARTITION_STATES = ['failed', 'missing', 'outdated', 'filled'] as const;
export type PartitionState = (typeof PARTITION_STATES)[number];

/** States that `only` may select. */
export const SELECTABLE_STATES = ['missing', 'failed', 'outdated'] as const;
export type SelectableState = (typeof SELECTABLE_STATES)[number];

export const ORDERS = ['oldest-first', 'newest-first'] as const;
export type Order = (typeof ORDERS)[number];

export const ON_BUSY = ['wait', 'skip', 'fail'] as const;
export type OnBusy = (typeof ON_BUSY)[number];

/** The input of the workflow `backfill`: one JSON object. Exactly one of a range, `keys` or `last`; or none, with `only`. */
export interface BackfillInput {
  /** A pipeline's name: its path under `pipelines/` without extension. */
  readonly pipeline: string;
  /** First key, included. */
  readonly from?: string;
  /** Last key, included. Absent: to the newest finished partition. */
  readonly to?: string;
  /** Any set: keys and ranges written `from..to`. At most {@link MAX_KEYS} entries. */
  readonly keys?: readonly string[];
  /** The n newest finished partitions. */
  readonly last?: number;
  /** Only partitions in these states. Absent: every partition named, since a person who names a range means it. */
  readonly only?: readonly SelectableState[];
  /** Default `oldest-first`. */
  readonly order?: Order;
  /** Partitions at once in this backfill, 1 to {@link MAX_CONCURRENCY}. Default: the pipeline's, else {@link DEFAULT_CONCURRENCY}. */
  readonly concurrency?: number;
  /** 1 (first) to 5 (last). Default 3. */
  readonly priority?: number;
  /** A partition that another run is filling. Default `wait`: until it has ended, then fill. */
  readonly onBusy?: OnBusy;
  /** Take in the current, unfinished partition. Never the future. */
  readonly includeUnfinished?: boolean;
  /** Plan, write nothing; the result says what would be filled. */
  readonly dryRun?: boolean;
}

/** The input of the workflow `partition`, which other systems may start alone: one JSON object. */
export interface PartitionInput {
  readonly pipeline: string;
  readonly key: string;
  readonly onBusy?: OnBusy;
  readonly includeUnfinished?: boolean;
}

export const DEFAULT_CONCURRENCY = 4;
export const MAX_CONCURRENCY = 100;
export const MAX_KEYS = 10_000;
/** Failures that a result or `progress` lists; the ledger has them all. */
export const MAX_LISTED_FAILURES = 10;
/** Keys that a dry run lists. */
export const MAX_LISTED_KEYS = 100;
/** Milliseconds. See the design of the two budgets in docs: `attempts` counts the pipeline's own faults only. */
export const DEFAULTS = {
  timeoutMs: 3_600_000,
  retryAttempts: 3,
  giveUpAfterMs: 86_400_000,
  priority: 3,
} as const;

/** One committed fill, as the workflow `partition` returns it. */
export interface PartitionResult {
  readonly pipeline: string;
  readonly key: string;
  /** Rows the partition holds now. */
  readonly rows: number;
  /** Rows the fill replaced. */
  readonly deleted: number;
  readonly seconds: number;
  /** For example `emptied`: a window that had rows has none now. */
  readonly warnings: readonly string[];
  /** Present where `onBusy: skip` met a running fill: nothing was done. */
  readonly skipped?: true;
}

export interface PartitionFailure {
  readonly key: string;
  readonly type: string;
  readonly message: string;
}

export interface BackfillCounts {
  /** Partitions of the plan. */
  readonly total: number;
  readonly filled: number;
  readonly failed: number;
  readonly skipped: number;
}

/** What `backfill` returns; as the first detail of the failure `BackfillIncomplete` where some failed. */
export interface BackfillResult extends BackfillCounts {
  readonly pipeline: string;
  /** First and last key of the plan, in the calendar's order; absent where nothing was to do. */
  readonly first?: string;
  readonly last?: string;
  /** Rows inserted by all fills of the backfill. */
  readonly rows: number;
  /** The first failures, at most {@link MAX_LISTED_FAILURES}. */
  readonly failures: readonly PartitionFailure[];
  /** Said to people: partitions left out since they are unfinished, in the future or before `start`. */
  readonly notes: readonly string[];
  /** With `dryRun`: the first {@link MAX_LISTED_KEYS} keys that would be filled. */
  readonly keys?: readonly string[];
}

/** The answer to the query `progress`. */
export interface Progress extends BackfillCounts {
  readonly pipeline: string;
  readonly first?: string;
  readonly last?: string;
  readonly rows: number;
  /** Keys being filled now. */
  readonly running: readonly string[];
  readonly failures: readonly PartitionFailure[];
  readonly phase: 'planning' | 'filling' | 'draining' | 'ended';
}

/** What a caller does about a failure: `no`: it is final. `counted`: tried `retry.attempts` times. `world`: until `giveUpAfter`. */
export type Retried = 'no' | 'counted' | 'world';

/** Every failure type, and whether it is retried. Types are API: callers and retry policies match on them. */
export const FAILURES = {
  InvalidInput: 'no',
  UnknownPipeline: 'no',
  InvalidPipeline: 'no',
  PlanChanged: 'no',
  Busy: 'no',
  SchemaMismatch: 'no',
  RowsOutsideWindow: 'no',
  CheckFailed: 'no',
  DataError: 'no',
  PermissionDenied: 'no',
  StaleAttempt: 'no',
  BackfillIncomplete: 'no',
  SourceFailed: 'counted',
  TimedOut: 'counted',
  Unexpected: 'counted',
  SourceNotReady: 'world',
  DatabaseUnavailable: 'world',
  Conflict: 'world',
  WrongLedger: 'world',
  WorkerOutdated: 'world',
} as const satisfies Record<string, Retried>;

export type FailureType = keyof typeof FAILURES;

export function isFailureType(type: string | null | undefined): type is FailureType {
  return typeof type === 'string' && Object.hasOwn(FAILURES, type);
}

/** The id of the child workflow that fills one partition. */
export function partitionWorkflowId(pipeline: string, key: string): string {
  return `${pipeline}/${key}`;
}
