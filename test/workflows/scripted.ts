import { randomBytes } from 'node:crypto';
import { Context } from '@temporalio/activity';
import type { Client, WorkflowHandle, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { ControlActivities, FillActivities } from '../../src/activities/create-activities.js';
import type { BackfillPlan, FillPartitionRequest } from '../../src/activities/messages.js';
import type { PartitionResult } from '../../src/contract.js';

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
  readonly fill?: (key: string, request: FillPartitionRequest) => Promise<number | void>;
  readonly control?: Partial<ControlActivities>;
}

export function scripted({ keys = [], plan = {}, page = 500, fill, control = {} }: Script = {}): Scripted {
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
  const result = (key: string, rows: number): PartitionResult => ({
    pipeline,
    key,
    rows,
    deleted: 0,
    seconds: 0,
    warnings: [],
  });
  const activities: ControlActivities = {
    planBackfill: async () => ({ plan: planned, keys: keys.slice(0, page) }),
    nextKeys: async ({ cursor }) => keys.slice(cursor.taken, cursor.taken + page),
    endBackfill: async () => undefined,
    planPartition: async ({ arguments: [input] }) => ({ pipeline, key: (input as { key: string }).key, policy }),
    endFill: async () => undefined,
    recordFailure: async () => undefined,
    awaitPartition: async () => ({ wanted: true }),
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
        return result(request.key, (await fill?.(request.key, request)) ?? 1);
      },
    },
    requests: <Name extends keyof ControlActivities>(name: Name) =>
      requests
        .filter((call) => call.name === name)
        .map(({ request }) => request as Parameters<ControlActivities[Name]>[0]),
  };
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

type Event = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number];

/** A run's history. */
export async function eventsOf(handle: WorkflowHandle): Promise<Event[]> {
  return (await handle.fetchHistory()).events ?? [];
}

/** Events but those of workflow tasks, whose number depends on timing. */
export function withoutTasks(events: readonly Event[]): Event[] {
  return events.filter(
    (event) =>
      !event.workflowTaskScheduledEventAttributes &&
      !event.workflowTaskStartedEventAttributes &&
      !event.workflowTaskCompletedEventAttributes,
  );
}

export function failedTasks(events: readonly Event[]): Event[] {
  return events.filter((event) => event.workflowTaskFailedEventAttributes);
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
