import { Client, type Connection } from '@temporalio/client';
import {
  DEFAULTS,
  partitionWorkflowId,
  WORKFLOW_TYPES,
  type BackfillInput,
  type BackfillResult,
  type PartitionInput,
} from '../contract.js';
import { Failure } from '../failure.js';
import { loadSettings, type Settings } from '../settings.js';
import { clientIdentity } from '../temporal/client-identity.js';
import { connectTemporal } from '../temporal/connect.js';
import { temporalServer } from '../temporal/temporal-server.js';
import { backfillWorkflowId, partitions } from './backfill-id.js';
import { type Abortable, BackfillHandle } from './backfill-handle.js';
import { backfillMemo, memoOfBackfill, memoOfPartition, partitionMemo } from './input-memo.js';
import { PartitionHandle } from './partition-handle.js';
import { PipelineSchedules } from './pipeline-schedules.js';
import { readPollers, type Pollers } from './pollers.js';
import { runFailed } from './run-failed.js';
import { resultHandle } from './run-handle.js';
import { startOrFind, startOrJoin, type StartRequest } from './start-or-join.js';

export interface ConnectOptions {
  /**
   * Host and port of the Temporal server, in place of the environment's. Namespace, TLS and API key stay what the environment
   * says, in Temporal's own variables and profiles.
   */
  readonly address?: string;
  readonly namespace?: string;
  /** The workers' task queue. Absent: `REPAVE_TASK_QUEUE`, else `repave`. */
  readonly taskQueue?: string;
  /** A connection of the caller's own; `close` leaves it open. */
  readonly connection?: Connection;
  /** Settings read elsewhere. Absent: the environment's, and a running `repave dev`'s in this folder. */
  readonly settings?: Settings;
}

/**
 * Connects to the Temporal server that workers poll. Needs no database. Throws `ServerUnreachable` where it does not answer,
 * `InvalidInput` for settings that cannot be read.
 */
export async function connectRepave(options: ConnectOptions = {}): Promise<RepaveClient> {
  const settings = options.settings ?? loadSettings();
  const taskQueue = options.taskQueue ?? settings.taskQueue;
  if (options.connection) {
    const namespace = options.namespace ?? 'default';
    const identity = clientIdentity();
    return new RepaveClient(new Client({ connection: options.connection, namespace, identity }), taskQueue, false);
  }
  const { env } = settings;
  const server = temporalServer(
    options.address ? { ...settings, env: { ...env, TEMPORAL_ADDRESS: options.address } } : settings,
  );
  const client = await connectTemporal({ ...server, namespace: options.namespace ?? server.namespace });
  return new RepaveClient(client, taskQueue, true);
}

/** Plans, starts, follows, steers and cancels runs. */
export class RepaveClient {
  /** Temporal's own client, for what this one does not do. */
  readonly temporal: Client;
  readonly taskQueue: string;
  /** The schedules of this task queue's pipelines. */
  readonly schedules: PipelineSchedules;
  readonly #owned: boolean;

  constructor(temporal: Client, taskQueue: string, owned: boolean) {
    this.temporal = temporal;
    this.taskQueue = taskQueue;
    this.schedules = new PipelineSchedules(temporal, taskQueue);
    this.#owned = owned;
  }

  /**
   * Starts a backfill, or joins the one that runs with equal input (`joined` says which). One that has ended runs again.
   * Throws `InvalidInput` naming the fields in which a running one differs. Whether the input itself is right, the run says:
   * `result` throws `BackfillFailed` of type `InvalidInput`.
   */
  async backfill(input: BackfillInput, options: { readonly id?: string } = {}): Promise<BackfillHandle> {
    const run = await startOrJoin(this.temporal, {
      type: WORKFLOW_TYPES.backfill,
      id: options.id ?? backfillWorkflowId(input),
      taskQueue: this.taskQueue,
      input,
      memo: backfillMemo(input),
      memoOf: memoOfBackfill,
      summary: `${input.pipeline} ${partitions(input)}`,
      priority: inRange(input.priority),
    });
    return new BackfillHandle(this.temporal, run);
  }

  /**
   * What a backfill of this input would fill, as a worker plans it: the plan's id, counts by reason, the first 100 keys and notes.
   * Writes nothing. Throws as `result` does; where no worker runs it waits for one, until `signal` ends that.
   */
  async plan(
    input: Omit<BackfillInput, 'dryRun'>,
    options: Abortable & { readonly id?: string } = {},
  ): Promise<BackfillResult> {
    const { id, signal } = options;
    const handle = await this.backfill({ ...input, dryRun: true }, id === undefined ? {} : { id });
    return handle.result({ signal });
  }

  /**
   * Starts the fill of one partition, or joins the one started with equal input. Where another run fills it, such as a
   * backfill's, `onBusy` decides: `wait` returns only once that has ended and this one was started, `fail` throws `Busy`,
   * `skip` returns the other run's handle.
   */
  async partition(input: PartitionInput): Promise<PartitionHandle> {
    const id = partitionWorkflowId(input.pipeline, input.key);
    const request: StartRequest = {
      type: WORKFLOW_TYPES.partition,
      id,
      taskQueue: this.taskQueue,
      input,
      memo: partitionMemo(input),
      memoOf: memoOfPartition,
      summary: `${input.pipeline} ${input.key}`,
    };
    for (;;) {
      const found = await startOrFind(this.temporal, request);
      if (!('differs' in found)) return new PartitionHandle(this.temporal, found);
      if (found.differs?.length === 0 || input.onBusy === 'skip') return new PartitionHandle(this.temporal, found.run);
      if (input.onBusy === 'fail') {
        throw new Failure(
          'Busy',
          `Another run fills ${input.key} of ${input.pipeline} (workflow ${id}). Wait until it has ended.`,
        );
      }
      await resultHandle(this.temporal, found.run)
        .result()
        .catch((error: unknown) => {
          // However it ended; only a run that cannot be asked about is an error here.
          const ended = runFailed(error);
          if (ended === error) throw error;
        });
    }
  }

  /** A handle of a backfill that was started elsewhere or before. Asks nothing: an unknown id shows when it is used. */
  handle(id: string, runId?: string): BackfillHandle {
    return new BackfillHandle(this.temporal, { id, runId, joined: true });
  }

  /** How many workers poll, so that a caller can say that none does. */
  async pollers(): Promise<Pollers> {
    return readPollers(this.temporal, this.taskQueue);
  }

  async close(): Promise<void> {
    if (this.#owned) await this.temporal.connection.close();
  }
}

/** A priority that Temporal would refuse is left for the run to refuse, by name. */
function inRange(priority: unknown): number {
  const valid = typeof priority === 'number' && Number.isInteger(priority) && priority >= 1 && priority <= 5;
  return valid ? priority : DEFAULTS.priority;
}
