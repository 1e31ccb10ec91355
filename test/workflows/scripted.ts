import { randomBytes } from 'node:crypto';
import { Context } from '@temporalio/activity';
import type { Client, WorkflowHandle, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { ControlActivities, FillActivities } from '../../src/activities/create-activities.js';
import { startHeartbeat } from '../../src/activities/heartbeat.js';
import type { BackfillPlan, FillBatchRequest, FillPartitionRequest } from '../../src/activities/messages.js';
import { keysName, type NotReady, type PartitionOutcome, type PartitionResult } from '../../src/contract.js';

/** Activities that do what a test says and keep what they were asked, for tests of the workflows' own logic. */
export interface Scripted {
  readonly pipeline: string;
  readonly fills: FillActivities;
  readonly control: ControlActivities;
  /** Every call, as `activity key`, in the order of their beginning. */
  readonly calls: string[];
  requests<Name extends keyof ControlActivities>(name: Name): Parameters<ControlActivities[Name]>[0][];
}

export interface Script {
  readonly keys?: readonly string[];
  readonly plan?: Partial<BackfillPlan>;
  readonly page?: number;
  /** How a fill ends: with its rows, or, where it says so, not ready. Also each of a batch, unless `batch` says otherwise. */
  readonly fill?: (key: string, request: FillPartitionRequest) => Promise<number | void | NotReady>;
  readonly batch?: (request: FillBatchRequest) => Promise<readonly PartitionOutcome[]>;
  readonly control?: Partial<ControlActivities>;
}

/** What every fill of a plan is bound to, as this version plans it. */
export const POLICY = { ledger: 'l', fingerprint: 'f', timeoutMs: 60_000, giveUpAfterMs: 600_000, backfill: 'run' };

/** Keys of the fills that have begun, in that order. */
export function fillsOf({ calls }: Scripted): string[] {
  return calls.flatMap((call) => (call.startsWith('fillPartition ') ? [call.slice('fillPartition '.length)] : []));
}

export function scripted({ keys = [], plan = {}, page = 500, fill, batch, control = {} }: Script = {}): Scripted {
  const pipeline = `p_${randomBytes(6).toString('hex')}`;
  const calls: string[] = [];
  const requests: { name: string; request: unknown }[] = [];
  const policy = { ledger: 'l', fingerprint: 'f', timeoutMs: 60_000, giveUpAfterMs: 600_000, ...plan.policy };
  const planned: BackfillPlan = {
    pipeline,
    run: 'run',
    total: keys.length,
    notes: [],
    concurrency: 3,
    priority: 3,
    onBusy: 'wait',
    ...plan,
    policy,
  };
  const result = (key: string, end: number | void | NotReady): PartitionResult => ({
    pipeline,
    key,
    rows: typeof end === 'object' ? 0 : (end ?? 1),
    deleted: 0,
    seconds: 0,
    warnings: [],
    ...(typeof end === 'object' ? { notReady: end } : {}),
  });
  const batches = (from: number): string[][] => inBatches(keys.slice(from, from + page), plan.batch ?? 1);
  const activities: ControlActivities = {
    planBackfill: async () =>
      plan.batch === undefined
        ? { plan: planned, keys: keys.slice(0, page) }
        : { plan: planned, keys: [], batches: batches(0) },
    planDownstream: async () => ({ pipelines: [], notes: [] }),
    nextKeys: async ({ cursor }) => keys.slice(cursor.taken, cursor.taken + page),
    nextBatches: async ({ cursor }) => batches(cursor.taken),
    endBackfill: async () => undefined,
    planPartition: async ({ arguments: [input] }) => ({ pipeline, key: (input as { key: string }).key, policy }),
    endFill: async () => undefined,
    endBatch: async () => ({ outcomes: [] }),
    recordFailure: async () => undefined,
    awaitPartition: async () => ({ wanted: true }),
    awaitPartitions: async ({ runs }) => ({ ended: runs.map(({ id, keys }) => ({ id, wantedKeys: keys })) }),
    awaitRun: async () => ({ found: true }),
    tell: async () => undefined,
    failedKeys: async () => [],
    noteBackfill: async () => undefined,
    ...control,
  };
  const kept = Object.entries(activities).map(([name, activity]) => [
    name,
    (request: { key?: string }) => {
      calls.push(request.key === undefined ? name : `${name} ${request.key}`);
      requests.push({ name, request });
      return (activity as (request: unknown) => Promise<unknown>)(request);
    },
  ]);
  return {
    pipeline,
    calls,
    control: Object.fromEntries(kept) as ControlActivities,
    fills: {
      fillPartition: async (request) => {
        calls.push(`fillPartition ${request.key}`);
        return result(request.key, await fill?.(request.key, request));
      },
      fillBatch: async (request) => {
        calls.push(`fillBatch ${keysName(request.keys)}`);
        if (batch) return { pipeline, outcomes: await batch(request) };
        const outcomes: PartitionOutcome[] = [];
        for (const key of request.keys) outcomes.push(result(key, await fill?.(key, { ...request, key })));
        return { pipeline, outcomes };
      },
    },
    requests: <Name extends keyof ControlActivities>(name: Name) =>
      requests
        .filter((call) => call.name === name)
        .map(({ request }) => request as Parameters<ControlActivities[Name]>[0]),
  };
}

function inBatches(keys: readonly string[], size: number): string[][] {
  const count = Math.ceil(keys.length / size);
  return Array.from({ length: count }, (_, i) => keys.slice(i * size, (i + 1) * size));
}

/**
 * The same activities, which heartbeat for as long as they run, as the product's do: one that a test holds is not given up for
 * lost, and begun a second time, where the test takes longer than a heartbeat's time-out.
 */
export function beating<Activities extends object>(activities: Activities): Activities {
  const each = Object.entries(activities) as [string, (request: unknown) => Promise<unknown>][];
  const beat = each.map(([name, activity]) => [
    name,
    async (request: unknown) => {
      const heartbeat = startHeartbeat(() => undefined);
      try {
        return await activity(request);
      } finally {
        heartbeat.stop();
      }
    },
  ]);
  return Object.fromEntries(beat) as Activities;
}

/** Heartbeats until the activity is cancelled, then throws its cancellation, as a fill does once it is rolled back. */
export async function untilCancelled(): Promise<never> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 200);
  try {
    return await context.cancelled;
  } finally {
    clearInterval(timer);
  }
}

/** A promise and its resolver, to hold a step back until the test lets it go. */
export function gate(): { readonly opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Days from `first` on, as keys. */
export function days(first: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) =>
    new Date(Date.parse(first) + i * 86_400_000).toISOString().slice(0, 10),
  );
}

/** Waits until something holds; the time-out of the test is its limit. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50));
}

/** WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND and …_UNHANDLED_UPDATE of Temporal's API. */
const OVERTAKEN = [1, 31];

type Event = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number];

/** A run's history. */
export async function eventsOf(handle: WorkflowHandle): Promise<Event[]> {
  return (await handle.fetchHistory()).events ?? [];
}

/** Events but those of workflow tasks that have not failed, whose number depends on timing. */
export function withoutTasks(events: readonly Event[]): Event[] {
  return events.filter(
    (event) =>
      !event.workflowTaskScheduledEventAttributes &&
      !event.workflowTaskStartedEventAttributes &&
      !event.workflowTaskCompletedEventAttributes &&
      !event.workflowTaskTimedOutEventAttributes &&
      !wasOvertaken(event),
  );
}

/** Workflow tasks that the workflow has failed. */
export function failedTasks(events: readonly Event[]): Event[] {
  return events.filter((event) => event.workflowTaskFailedEventAttributes && !wasOvertaken(event));
}

/** Whether a task was to end its run when a signal, an update or a cancel came: the server has that heard first, in another task. */
function wasOvertaken({ workflowTaskFailedEventAttributes: failed }: Event): boolean {
  return OVERTAKEN.includes(Number(failed?.cause));
}

export function scheduledActivities(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? []);
}

/** All runs of a chain of continue-as-new, the oldest first. (Temporal's listing lags behind.) */
export async function runsOf(
  client: Client,
  { workflowId, firstExecutionRunId }: WorkflowHandleWithFirstExecutionRunId,
): Promise<{ runId: string; status: string }[]> {
  const runs: { runId: string; status: string }[] = [];
  for (let next: string | null | undefined = firstExecutionRunId; next;) {
    const handle: WorkflowHandle = client.workflow.getHandle(workflowId, next);
    runs.push({ runId: next, status: (await handle.describe()).status.name });
    const last: Event | undefined = (await eventsOf(handle)).at(-1);
    next = last?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return runs;
}
