/**
 * What workflows and activities say to each other: the JSON of histories. Types alone. A running workflow replays what an
 * older worker wrote, so fields may be added, never renamed or given another meaning.
 */
import type { FailureType, OnBusy, Order, PartitionFailure, SelectableState } from '../contract.js';

/** What a backfill, or the plan of a partition started alone, fixes for the fill of each partition. */
export interface FillPolicy {
  /** The ledger the run was planned against: another one refuses as `WrongLedger`. */
  readonly ledger: string;
  /** The pipeline as it was planned: a worker that holds another answers `WorkerOutdated`. */
  readonly fingerprint: string;
  /** Milliseconds one attempt may take for its own work. */
  readonly timeoutMs: number;
  /** Milliseconds from its scheduling after which a partition is given up. */
  readonly giveUpAfterMs: number;
}

export interface PlanBackfillRequest {
  /** Everything the workflow was started with, unread: a workflow has no schema library. */
  readonly arguments: readonly unknown[];
  /** Workflow id of the backfill. */
  readonly id: string;
  /** ISO instant that `last` counts back from: a schedule's own time, else the start of the run. */
  readonly asOf: string;
}

/** A backfill with every setting resolved; its list of partitions is fixed from here on. */
export interface BackfillPlan {
  readonly pipeline: string;
  /** The run the ledger knows the backfill by: the one that planned it, whatever continues it. */
  readonly run: string;
  readonly policy: FillPolicy;
  readonly total: number;
  /** First and last key in the calendar's order; absent where nothing is to do. */
  readonly first?: string;
  readonly last?: string;
  readonly notes: readonly string[];
  readonly concurrency: number;
  readonly priority: number;
  readonly onBusy: OnBusy;
  readonly only?: readonly SelectableState[];
  /** The keys, where they follow each other in the calendar. */
  readonly range?: KeyRange;
  /** The name under which `repave.run_key` has them otherwise. */
  readonly list?: string;
  /** With `dryRun`: what would be filled, at most the contract's limit of listed keys. */
  readonly dryRun?: { readonly keys: readonly string[] };
}

export interface KeyRange {
  readonly from: string;
  readonly to: string;
  readonly order: Order;
}

/** A plan, with the first keys to fill, so that a short backfill needs no second activity. */
export interface PlannedBackfill {
  readonly plan: BackfillPlan;
  readonly keys: readonly string[];
}

/** How far a backfill has come in its list. */
export interface Cursor {
  /** Keys taken so far. */
  readonly taken: number;
  /** The last of them. */
  readonly key?: string;
}

export interface NextKeysRequest {
  readonly pipeline: string;
  readonly ledger: string;
  readonly range?: KeyRange;
  readonly list?: string;
  readonly cursor: Cursor;
}

/** What a backfill carries into its next run: never a list that grows. */
export interface CarriedBackfill {
  readonly plan: BackfillPlan;
  readonly cursor: Cursor;
  readonly filled: number;
  readonly failed: number;
  readonly skipped: number;
  readonly rows: number;
  readonly failures: readonly PartitionFailure[];
}

/** The second argument of `backfill`: what continue-as-new hands on. */
export interface Continuation {
  /** Partitions after which a run continues as new, where the history's length does not ask for it before. */
  readonly partitionsPerRun?: number;
  /** Absent in a first run. */
  readonly carried?: CarriedBackfill;
}

export interface EndBackfillRequest {
  readonly pipeline: string;
  readonly ledger: string;
  readonly run: string;
  readonly outcome: BackfillOutcome;
  readonly filled: number;
  readonly failed: number;
  readonly skipped: number;
  readonly rows: number;
}

export type BackfillOutcome = 'done' | 'incomplete' | 'cancelled' | 'failed';

export interface PlanPartitionRequest {
  readonly arguments: readonly unknown[];
  /** Workflow id of the run itself, which is no other run that fills the partition. */
  readonly id: string;
}

export interface PlannedPartition {
  readonly pipeline: string;
  readonly key: string;
  readonly policy: FillPolicy;
  /** Another run fills it, and `onBusy` is `skip`. */
  readonly skip?: true;
}

export interface FillPartitionRequest {
  readonly pipeline: string;
  readonly key: string;
  readonly policy: FillPolicy;
}

/** The first detail of a fill's failures, and what its heartbeats say. */
export interface AttemptNote {
  readonly attempt: number;
}

export interface RecordFailureRequest {
  readonly pipeline: string;
  readonly ledger: string;
  readonly key: string;
  /** Run of the workflow whose fill failed. */
  readonly run: string;
  readonly attempt: number;
  readonly type: FailureType;
  readonly message: string;
}

export interface EndFillRequest {
  readonly pipeline: string;
  readonly ledger: string;
  readonly key: string;
  readonly run: string;
}

export interface AwaitPartitionRequest {
  readonly pipeline: string;
  readonly ledger: string;
  readonly key: string;
  /** Workflow id of the other run. */
  readonly id: string;
  /** The backfill's own choice and fingerprint: whether the partition is still to be filled is looked up anew. */
  readonly only?: readonly SelectableState[];
  readonly fingerprint: string;
}

export interface AwaitedPartition {
  /** False where the other run left nothing to do for this backfill. */
  readonly wanted: boolean;
}
