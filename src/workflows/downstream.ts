import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  condition,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  workflowInfo,
} from '@temporalio/workflow';
import type { BackfillPlan, DownstreamPipeline } from '../activities/messages.js';
import {
  type BackfillCounts,
  type BackfillResult,
  type DownstreamResult,
  shortened,
  WORKFLOW_TYPES,
} from '../contract.js';
import { awaitRun } from './await-run.js';
import type { backfill } from './backfill.js';
import type { CarriedDownstream } from './carried.js';
import { planning } from './control.js';
import { endedBy, finalFailure } from './final-failure.js';
import { plannedPlace } from './planned-place.js';
import type { Shared } from './shared.js';
import type { Steering } from './steering.js';

/** How the backfills of what depends on a backfill's pipeline have ended. */
export interface Downstream extends CarriedDownstream {
  /** What is to be filled could not be found out. */
  readonly broken?: ApplicationFailure;
}

/**
 * Fills what depends on a plan's partitions, which are filled: by a backfill of each pipeline, one after the other in their
 * order, of the partitions that overlap. Where one does not end whole, those that come after it are not begun; others are. Paused
 * by its lever it begins none, and stopped none any more. Returns at once where it is cancelled, once what runs has ended.
 */
export async function fillDownstream({ plan, steering, tally, show }: Shared): Promise<Downstream> {
  const { pipeline, policy, first, last } = plan;
  const done: Downstream = { results: [], notes: [], wanting: [], stopped: false };
  if (first === undefined || last === undefined) return done;
  const results: DownstreamResult[] = [];
  const wanting: string[] = [];
  let stopped = false;
  try {
    const planned = await planning({ waits: false }).planDownstream({ pipeline, ...plannedPlace(policy), first, last });
    for (const next of planned.pipelines) {
      if (next.unserved !== undefined) {
        results.push({ ...countsOf(next), reason: shortened(next.unserved) });
        wanting.push(next.pipeline);
        continue;
      }
      await condition(() => steering.paused === undefined || steering.stopping);
      const begins = next.total > 0 && !steering.stopping && !next.after.some((upstream) => wanting.includes(upstream));
      tally.downstream = begins ? downstreamId(next) : undefined;
      show();
      const result = begins ? await fillNext(plan, next, steering) : undefined;
      tally.downstream = undefined;
      show();
      results.push(result ?? { ...countsOf(next), first: next.first, last: next.last });
      if (result ? result.reason === undefined : next.total === 0) continue;
      if (!result && steering.stopping) stopped = true;
      else wanting.push(next.pipeline);
    }
    return { results, notes: planned.notes, wanting, stopped };
  } catch (error) {
    if (isCancellation(error) || CancellationScope.current().consideredCancelled) return { ...done, results, wanting };
    if (error instanceof ActivityFailure) return { ...done, results, wanting, broken: endedBy(finalFailure(error)) };
    throw error;
  } finally {
    tally.downstream = undefined;
    show();
  }
}

function downstreamId({ pipeline }: DownstreamPipeline): string {
  return `${workflowInfo().workflowId}/${pipeline}`;
}

/** Fills one of them to its end; undefined where it is stopped before that has begun. Throws as cancelled. */
async function fillNext(
  plan: BackfillPlan,
  next: DownstreamPipeline,
  steering: Steering,
): Promise<DownstreamResult | undefined> {
  const { pipeline, first, last, keys } = next;
  const id = downstreamId(next);
  const input = { pipeline, ...(keys ? { keys } : { from: first, to: last }), priority: plan.priority };
  for (;;) {
    try {
      const result = await executeChild<typeof backfill>(WORKFLOW_TYPES.backfill, {
        workflowId: id,
        parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
        priority: { priorityKey: plan.priority },
        staticSummary: `${pipeline} ${first}..${last}`,
        args: [input],
      });
      const reason = result.stopped ? 'It was stopped with some of it left.' : undefined;
      return { ...countsOf(next, result), first, last, id, reason };
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) {
        // One of an earlier run of this id, which was ended from outside.
        await awaitRun({ id, comesWithinMs: 0 }, steering, Infinity);
        if (steering.stopping) return undefined;
        continue;
      }
      if (!(error instanceof ChildWorkflowFailure) || CancellationScope.current().consideredCancelled) throw error;
      const reason = shortened(finalFailure(error).message);
      return { ...countsOf(next, resultIn(error)), first, last, id, reason };
    }
  }
}

/** What an incomplete backfill says it has come to; undefined where it ended otherwise. */
function resultIn({ cause }: ChildWorkflowFailure): BackfillResult | undefined {
  if (!(cause instanceof ApplicationFailure) || cause.type !== 'BackfillIncomplete') return undefined;
  return cause.details?.[0] as BackfillResult | undefined;
}

function countsOf(
  { pipeline, total }: DownstreamPipeline,
  counts?: BackfillCounts,
): { pipeline: string } & BackfillCounts {
  const { filled = 0, failed = 0, skipped = 0 } = counts ?? {};
  return { pipeline, total: counts?.total ?? total, filled, failed, skipped };
}
