import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ChildWorkflowFailure,
  condition,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  patched,
} from '@temporalio/workflow';
import type { BackfillPlan, FillPolicy } from '../activities/messages.js';
import { keysName, partitionWorkflowId, type PartitionOutcome, WORKFLOW_TYPES } from '../contract.js';
import { control, isTimeUp, waiting } from './control.js';
import { finalFailure } from './final-failure.js';
import type { Batch } from './key-pager.js';
import type { partition } from './partition.js';
import type { partitions } from './partitions.js';
import { plannedPlace } from './planned-place.js';
import { childMarks } from './search-attributes.js';
import type { ChildOutcome } from './tally.js';

/** How each of a child's partitions ended, by key. */
export type ChildOutcomes = ReadonlyMap<string, ChildOutcome>;

/**
 * What becomes of a batch that another run fills, and that is to wait for it: it comes back as busy, or its lane waits, until a
 * time in milliseconds since the epoch, later where the backfill `isPaused` then, or it has waited long enough.
 */
export type WhereToWait = 'behind the others' | InLane | 'no longer';

interface InLane {
  readonly until: number;
  readonly isPaused?: () => boolean;
}

/** Milliseconds in which the ledger says what a batch that ended by itself has come to. */
const LOOK_WITHIN_MS = 10 * 60_000;

/**
 * Fills one partition of a backfill, or neighbouring ones, by a child workflow and says how that ended; a child's failure is an
 * outcome, never an exception. Where another run fills just these, does what the plan's `onBusy` says: to wait, what
 * `whereToWait` says.
 */
export async function fillChild(
  plan: BackfillPlan,
  keys: Batch,
  notReady: FillPolicy['notReady'],
  whereToWait: (keys: Batch) => WhereToWait,
): Promise<ChildOutcomes> {
  const job = { ...plan, policy: notReady ? { ...plan.policy, notReady } : plan.policy };
  const outcomes = new Map<string, ChildOutcome>();
  let left: readonly Batch[] = [keys];
  while (left.length > 0) {
    const [batch = [], ...others] = left;
    left = others;
    const ended = (await runChild(job, batch)) ?? (await busy(job, batch, whereToWait));
    for (const [key, outcome] of ended) outcomes.set(key, outcome);
    left = [...runsOf(batch, (key) => !ended.has(key)), ...left];
  }
  return outcomes;
}

/** The runs of neighbours of a batch that are chosen. */
export function runsOf(batch: Batch, chosen: (key: string) => boolean): Batch[] {
  const runs: string[][] = [];
  let run: string[] | undefined;
  for (const key of batch) {
    if (!chosen(key)) run = undefined;
    else if (run) run.push(key);
    else runs.push((run = [key]));
  }
  return runs;
}

/** Runs a child to its end; undefined where another run of its id is going on. */
async function runChild(plan: BackfillPlan, keys: Batch): Promise<ChildOutcomes | undefined> {
  try {
    const [key] = keys;
    return key !== undefined && keys.length === 1 ? await runOne(plan, key) : await runBatch(plan, keys);
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError && !cancelled()) return undefined;
    // After a cancel was asked, whatever failure follows counts as cancelled.
    if (error instanceof ChildWorkflowFailure && (keys.length > 1 || hasRecordedNothing(error))) {
      return endedByItself(plan, keys, error);
    }
    if (cancelled()) return all(keys, { kind: 'cancelled' });
    if (error instanceof ChildWorkflowFailure) return all(keys, failed(error));
    throw error;
  }
}

/** Whether a child of one partition was ended from outside, which it could record nowhere: a later retry goes by the ledger. */
function hasRecordedNothing({ cause }: ChildWorkflowFailure): boolean {
  const itself = cause instanceof ApplicationFailure || cause instanceof CancelledFailure;
  return !itself && patched('ended-from-outside');
}

async function runOne(plan: BackfillPlan, key: string): Promise<ChildOutcomes> {
  const result = await executeChild<typeof partition>(WORKFLOW_TYPES.partition, {
    ...childOptions(plan, [key]),
    args: [{ pipeline: plan.pipeline, key }, plan.policy],
  });
  return new Map([[key, childOutcome(result)]]);
}

async function runBatch(plan: BackfillPlan, keys: Batch): Promise<ChildOutcomes> {
  const { outcomes } = await executeChild<typeof partitions>(WORKFLOW_TYPES.partitions, {
    ...childOptions(plan, keys),
    args: [{ pipeline: plan.pipeline, keys }, plan.policy],
  });
  return new Map(outcomes.map((outcome) => [outcome.key, childOutcome(outcome)]));
}

function childOptions(plan: BackfillPlan, keys: Batch) {
  const name = keysName(keys);
  // cancellationType stays absent: its default waits for the child's rollback; `undefined` would abandon the child.
  return {
    workflowId: partitionWorkflowId(plan.pipeline, name),
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    priority: { priorityKey: plan.priority },
    staticSummary: `${plan.pipeline} ${name}`,
    ...childMarks(plan, name),
  } as const;
}

/** Partitions whose child was cancelled, terminated or failed itself: the ledger says what became of each of its partitions. */
async function endedByItself(plan: BackfillPlan, keys: Batch, error: ChildWorkflowFailure): Promise<ChildOutcomes> {
  const failure = cancelled() ? undefined : finalFailure(error);
  const rest: ChildOutcome = failure ? { kind: 'failed', ...failure } : { kind: 'cancelled' };
  const outcomes = new Map(all(keys, rest));
  const run = error.execution.runId;
  if (!run) return outcomes;
  try {
    const request = { pipeline: plan.pipeline, ...plannedPlace(plan.policy), keys, run, failure };
    const ended = await CancellationScope.nonCancellable(() => control(LOOK_WITHIN_MS).endBatch(request));
    for (const outcome of ended.outcomes) outcomes.set(outcome.key, childOutcome(outcome));
  } catch (unknown) {
    if (!(unknown instanceof ActivityFailure)) throw unknown;
  }
  return outcomes;
}

/** What to do about partitions that another run fills; those that the answer leaves out are to be tried again. */
async function busy(
  plan: BackfillPlan,
  keys: Batch,
  whereToWait: (keys: Batch) => WhereToWait,
): Promise<ChildOutcomes> {
  const id = partitionWorkflowId(plan.pipeline, keysName(keys));
  switch (plan.onBusy) {
    case 'skip':
      return all(keys, { kind: 'skipped' });
    case 'fail':
      return all(keys, {
        kind: 'failed',
        type: 'Busy',
        message: `Another run fills this partition (workflow ${id}). Wait until it has ended, or set onBusy to wait.`,
      });
    case 'wait': {
      const where = whereToWait(keys);
      if (where === 'behind the others') return all(keys, { kind: 'busy', id });
      if (where !== 'no longer') return waitInLane(plan, keys, id, where);
      return all(keys, {
        kind: 'failed',
        type: 'Conflict',
        message:
          `Another run (workflow ${id}) fills this partition, and was waited for until giveUpAfter was over. ` +
          'Look at that run, and run this again once it has ended.',
      });
    }
    default:
      return plan.onBusy satisfies never;
  }
}

/**
 * Waits for the other run in the lane itself; its time over, nothing is known, and one more try says how it stands. A pause
 * starts nothing, so that the try comes after it.
 */
async function waitInLane(
  plan: BackfillPlan,
  keys: Batch,
  id: string,
  { until, isPaused = () => false }: InLane,
): Promise<ChildOutcomes> {
  try {
    const { wanted, wantedKeys = wanted ? keys : [] } = await waiting(until).awaitPartition({
      pipeline: plan.pipeline,
      ledger: plan.policy.ledger,
      key: keysName(keys),
      keys: keys.length > 1 ? keys : undefined,
      id,
      only: plan.only,
      fingerprint: plan.policy.fingerprint,
    });
    return all(
      keys.filter((key) => !wantedKeys.includes(key)),
      { kind: 'skipped' },
    );
  } catch (error) {
    if (cancelled()) return all(keys, { kind: 'cancelled' });
    if (!(error instanceof ActivityFailure)) throw error;
    if (until === Infinity || !isTimeUp(error)) return failedAll(keys, error);
    return isPaused() && !(await resumed(isPaused)) ? all(keys, { kind: 'cancelled' }) : new Map();
  }
}

/** Waits until the backfill is resumed; false where it is cancelled before. */
async function resumed(isPaused: () => boolean): Promise<boolean> {
  try {
    await condition(() => !isPaused());
    return true;
  } catch (error) {
    if (isCancellation(error)) return false;
    throw error;
  }
}

/** What waiting for other runs has come to where it failed. */
export function failedAll(keys: readonly string[], error: ActivityFailure): ChildOutcomes {
  return all(keys, failed(error));
}

function childOutcome(outcome: PartitionOutcome): ChildOutcome {
  if ('type' in outcome) return { kind: 'failed', type: outcome.type, message: outcome.message };
  if (outcome.skipped) return { kind: 'skipped' };
  if (outcome.notReady) return { kind: 'not ready', ...outcome.notReady };
  return { kind: 'filled', rows: outcome.rows };
}

function failed(error: ChildWorkflowFailure | ActivityFailure): ChildOutcome {
  const { type, message } = finalFailure(error);
  return { kind: 'failed', type, message };
}

function all(keys: Batch, outcome: ChildOutcome): ChildOutcomes {
  return new Map(keys.map((key) => [key, outcome]));
}

function cancelled(): boolean {
  return CancellationScope.current().consideredCancelled;
}
