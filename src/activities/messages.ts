/**
 * What workflows and activities say to each other: the JSON of histories. Types alone. A running workflow replays what an
 * older worker wrote, so fields may be added, never renamed or given another meaning.
 * What a workflow carries into its own next run is in `workflows/carried.ts`.
 */
import type {
  BackfillInput,
  BackfillOutcome,
  DownstreamResult,
  FailureType,
  Notice,
  OnBusy,
  OnFailure,
  Order,
  PartitionOutcome,
  PartitionState,
  Pause,
  SelectableState,
} from '../contract.js';

/** Where a run's work is done: by it a run can be ended also where its pipeline is no more. Plans of older versions lack it. */
export interface PlannedPlace {
  /** Name of the environment variable that has the URL of the target's database. */
  readonly database?: string;
  /** That of the database which the query reads, where it is another. */
  readonly source?: string;
}

/** What a backfill, or the plan of a partition started alone, fixes for the fill of each partition. */
export interface FillPolicy extends PlannedPlace {
  /** The ledger the run was planned against: another one refuses as `WrongLedger`. */
  readonly ledger: string;
  /** The pipeline as it was planned: a worker that holds another answers `WorkerOutdated`. */
  readonly fingerprint: string;
  /** Milliseconds one attempt may take for its own work. */
  readonly timeoutMs: number;
  /** Milliseconds from its scheduling after which a partition is given up. */
  readonly giveUpAfterMs: number;
  /**
   * What is done about a source that is not ready. Absent: it is asked again until `giveUpAfterMs`. `yield`: the child ends and
   * says so, for its backfill to try it again. `fail`: its time is up.
   */
  readonly notReady?: 'yield' | 'fail';
  /** What is done about a window that something else than a run of this id holds locked. Absent: it is waited for. */
  readonly onBusy?: OnBusy;
  /** The backfill it is part of, by its run in the ledger. Absent: started alone, or planned by an older version. */
  readonly backfill?: string;
  /** Who started the run, as Temporal has it: the client's identity. */
  readonly startedBy?: string;
}

export interface PlanBackfillRequest {
  /** Everything the workflow was started with, unread: a workflow has no schema library. */
  readonly arguments: readonly unknown[];
  /** Workflow id of the backfill. */
  readonly id: string;
  /** ISO instant that `last` counts back from: a schedule's own time, else the start of the run. */
  readonly asOf: string;
  /** The Temporal Schedule that started it. Absent: none. */
  readonly scheduledBy?: string;
  /** ISO instant at which Temporal started the run; with `scheduledBy`. */
  readonly startedAt?: string;
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
  /** Neighbouring partitions that one child fills. Absent: one. */
  readonly batch?: number;
  /** The pipeline asks whether its source is ready, or comes after others: partitions whose is not go behind all others. */
  readonly asksReady?: true;
  /** Partitions that may wait behind the others. Absent: 1,000. */
  readonly maxWaiting?: number;
  /** With `dryRun`: what would be filled, at most the contract's limit of listed keys; older plans have the keys alone. */
  readonly dryRun?: {
    readonly keys: readonly string[];
    readonly plan?: string;
    readonly counts?: Readonly<Record<PartitionState, number>>;
    readonly downstream?: readonly DownstreamResult[];
  };
  /**
   * Of a heal: partitions that are not ready are left to the next heal, so many milliseconds after they were first tried. Absent:
   * they fail after `giveUpAfterMs`.
   */
  readonly leavesAfterMs?: number;
  /** Once all of it is filled, what depends on it is filled too. */
  readonly downstream?: true;
  /** Absent: `continue`. */
  readonly onFailure?: OnFailure;
  readonly maxFailures?: number;
  /** Partitions that are filled alone first. Absent: none. */
  readonly canary?: number;
  /** Failures in the same way after which a partition rests. Absent: none ever does. */
  readonly tries?: number;
  /** Present with `tries`: partitions that rest, and are left out. */
  readonly resting?: number;
  /** The worker that planned it has a notify hook. */
  readonly notifies?: true;
  /** The namespace has the contract's search attributes. */
  readonly searchAttributes?: true;
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
  /** Present, instead of keys, where the plan has a `batch`. */
  readonly batches?: readonly (readonly string[])[];
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

export interface NextBatchesRequest extends NextKeysRequest {
  /** Keys of one batch at most. */
  readonly batch: number;
}

/** A page of the partitions of a backfill that have failed and were not filled since. */
export interface FailedKeysRequest extends PlannedPlace {
  readonly pipeline: string;
  readonly ledger: string;
  /** The backfill's run in the ledger. */
  readonly run: string;
  /** Keys behind this one, in the calendar's order. Absent: the first ones. */
  readonly after?: string;
}

/** How a backfill is set, told to the ledger for those who look while no worker runs. */
export interface NoteBackfillRequest extends PlannedPlace {
  readonly pipeline: string;
  readonly ledger: string;
  readonly run: string;
  readonly concurrency: number;
  /** Absent: it is not paused. */
  readonly paused?: Pause;
  readonly stopping: boolean;
  /** When the ledger had it ended; it goes on after all. */
  readonly wentOnAfter?: string;
}

/** Another workflow, which may be started at the same moment. */
export interface AwaitRunRequest {
  readonly id: string;
  /** Milliseconds in which it comes, if it does. */
  readonly comesWithinMs: number;
}

export interface AwaitedRun {
  /** False where it has not come in time. */
  readonly found: boolean;
}

/** Runs that fill partitions of a backfill, of which the first to end is waited for. */
export interface AwaitPartitionsRequest {
  readonly pipeline: string;
  readonly ledger: string;
  /** At most as many as a backfill may fill at once. */
  readonly runs: readonly BusyRun[];
  /** As in {@link AwaitPartitionRequest}. */
  readonly only?: readonly SelectableState[];
  readonly fingerprint: string;
}

export interface BusyRun {
  /** Workflow id of the other run. */
  readonly id: string;
  readonly keys: readonly string[];
}

/** Those of the runs that have ended, at least one, each with what of its keys is still to be filled. */
export interface AwaitedPartitions {
  readonly ended: readonly { readonly id: string; readonly wantedKeys: readonly string[] }[];
}

export interface EndBackfillRequest extends PlannedPlace {
  readonly pipeline: string;
  readonly ledger: string;
  readonly run: string;
  readonly outcome: BackfillOutcome;
  readonly filled: number;
  readonly failed: number;
  readonly skipped: number;
  readonly rows: number;
}

/** What depends on the partitions of a backfill, which are filled. */
export interface PlanDownstreamRequest extends PlannedPlace {
  readonly pipeline: string;
  readonly ledger: string;
  readonly first: string;
  readonly last: string;
}

export interface PlannedDownstream {
  /** In the order they are to be filled. */
  readonly pipelines: readonly DownstreamPipeline[];
  /** Said to people: what is left out, and why. */
  readonly notes: readonly string[];
}

/** What a backfill of a pipeline that comes after others is to be asked. */
export interface DownstreamPipeline {
  readonly pipeline: string;
  readonly after: readonly string[];
  readonly total: number;
  /** In the calendar's order; absent where nothing of it can be filled. */
  readonly first?: string;
  readonly last?: string;
  /** Present where it is not all from the first to the last. */
  readonly keys?: BackfillInput['keys'];
  /** Why nothing of it can be filled, and `total` is 0: its ledger does not have it. Absent: it has. */
  readonly unserved?: string;
}

/** What older workers do not answer. */
export interface EndedBackfill {
  /** By the database's clock. Absent: the ledger does not know the backfill. */
  readonly endedAt?: string;
}

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
  /** The worker that planned it has a notify hook. */
  readonly notifies?: true;
}

export interface FillPartitionRequest {
  readonly pipeline: string;
  readonly key: string;
  readonly policy: FillPolicy;
}

export interface FillBatchRequest {
  readonly pipeline: string;
  /** Neighbours, in the order they are to be filled. */
  readonly keys: readonly string[];
  readonly policy: FillPolicy;
}

/** Whose failures a run's end records, as its policy says. */
export type Provenance = Pick<FillPolicy, 'backfill' | 'startedBy'>;

/** The end of a batch whose activity has not ended well. */
export interface EndBatchRequest extends PlannedPlace, Provenance {
  readonly pipeline: string;
  readonly ledger: string;
  readonly keys: readonly string[];
  /** Run of the workflow that fills them. */
  readonly run: string;
  /** What to record of those that are neither filled nor failed. Absent, after a cancel: nothing. */
  readonly failure?: { readonly type: FailureType; readonly message: string; readonly attempt: number };
}

/** How a batch's partitions stand once its run is ended; those that hold what they held before are missing. */
export interface EndedBatch {
  readonly outcomes: readonly PartitionOutcome[];
}

/** The first detail of an activity's failures, and what its heartbeats say. */
export interface AttemptNote {
  readonly attempt: number;
  /** Of what plans a backfill: its worker has a notify hook. */
  readonly notifies?: true;
}

export interface RecordFailureRequest extends PlannedPlace, Provenance {
  readonly pipeline: string;
  readonly ledger: string;
  readonly key: string;
  /** Run of the workflow whose fill failed. */
  readonly run: string;
  readonly attempt: number;
  readonly type: FailureType;
  readonly message: string;
}

export interface EndFillRequest extends PlannedPlace {
  readonly pipeline: string;
  readonly ledger: string;
  readonly key: string;
  readonly run: string;
}

export interface AwaitPartitionRequest {
  readonly pipeline: string;
  readonly ledger: string;
  readonly key: string;
  /** Present where the other run fills several. */
  readonly keys?: readonly string[];
  /** Workflow id of the other run. */
  readonly id: string;
  /** The backfill's own choice and fingerprint: whether the partition is still to be filled is looked up anew. */
  readonly only?: readonly SelectableState[];
  readonly fingerprint: string;
}

export interface AwaitedPartition {
  /** False where the other run left nothing to do for this backfill. */
  readonly wanted: boolean;
  /** Of several: those that are still to be filled. */
  readonly wantedKeys?: readonly string[];
}

/** What an attempt to tell of an event hands on to the next one: what hooks were told by it, as the ledger is to have it. */
export interface TellNote extends AttemptNote {
  readonly told: readonly string[];
}

/** An event that somebody is to be told of: what the ledger does not say of it. */
export interface NoticeRequest
  extends
    PlannedPlace,
    Pick<
      Notice,
      'id' | 'event' | 'at' | 'pipeline' | 'key' | 'partition' | 'outcome' | 'counts' | 'paused' | 'reason' | 'failures'
    > {
  /** Absent where nothing was planned: no ledger knows of it. */
  readonly ledger?: string;
  /** The backfill that it is about, as the ledger knows it. Absent: a partition that was started alone. */
  readonly backfill?: { readonly id: string; readonly run: string };
  /** Of `heal-gave-up`: failures in the same way after which a partition rests. */
  readonly tries?: number;
}
