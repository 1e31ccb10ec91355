import { defineSearchAttributeKey } from '@temporalio/common';
import {
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineQuery,
  isCancellation,
  log,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { BackfillOutcome, BackfillPlan, Continuation, PlannedBackfill } from '../activities/messages.js';
import { PROGRESS_QUERY, type BackfillResult, type Progress } from '../contract.js';
import { control } from './control.js';
import { currentDetails } from './details.js';
import { fillChild } from './fill-child.js';
import { endedBy, finalFailure } from './final-failure.js';
import { KeyPager } from './key-pager.js';
import { Tally } from './tally.js';

const SCHEDULED_START = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');
const progressQuery = defineQuery<Progress>(PROGRESS_QUERY);

/** Events after which a run takes no more keys: what its lanes still write stays below the server's warning at 10,240. */
const MAX_EVENTS = 8_000;
/** How long the ledger may be away before a backfill ends without its last word there. */
const END_WITHIN_MS = 10 * 60_000;

/**
 * Fills many partitions, one child workflow each, `concurrency` at once. Takes one `BackfillInput`, judged by its first
 * activity. A partition's failure stops no other; with some failed it ends as `BackfillIncomplete`, whose first detail is the
 * {@link BackfillResult}. Cancelled, it starts nothing more and ends once every child is rolled back. The second argument is
 * what its own continue-as-new hands on.
 */
export async function backfill(...args: unknown[]): Promise<BackfillResult> {
  const continuation = handedOn(args);
  const tally = new Tally(continuation.carried);
  let plan = continuation.carried?.plan;
  setHandler(progressQuery, () => progress(args[0], plan, tally), {
    description: 'Counts, what runs now, the first failures',
  });

  const planned = plan ? { plan, keys: [] } : await planBackfill(args);
  plan = planned.plan;
  if (plan.dryRun) return { ...result(plan, tally), keys: plan.dryRun.keys };

  const ending = await fillAll(args[0], planned, continuation, tally);
  tally.phase = 'ended';
  setCurrentDetails(currentDetails(plan, tally));
  await endBackfill(plan, tally, ending.outcome);
  if (ending.failure) throw ending.failure;
  // A cancel that came while the last word was written finds nothing left to cancel, but a failure now counts as cancelled.
  if (tally.failed > 0) throw cancelled() ? wasCancelled(plan, tally) : incomplete(plan, tally);
  return result(plan, tally);
}

interface Ending {
  readonly outcome: BackfillOutcome;
  readonly failure?: Error;
}

/** Runs the lanes until all keys are done, or a cancel or a failure of the plan itself has ended them. May continue as new. */
async function fillAll(
  input: unknown,
  planned: PlannedBackfill,
  { partitionsPerRun, carried }: Continuation,
  tally: Tally,
): Promise<Ending> {
  const { plan, keys } = planned;
  const from = carried?.cursor ?? { taken: 0 };
  const pager = new KeyPager(plan, from, keys, (request) => control().nextKeys(request));
  const cap = partitionsPerRun ?? Infinity;
  let broken: ApplicationFailure | undefined;

  const mayTake = (): boolean => {
    const info = workflowInfo();
    if (cancelled() || broken || pager.exhausted) return false;
    if (pager.cursor.taken - from.taken < cap && !info.continueAsNewSuggested && info.historyLength <= MAX_EVENTS)
      return true;
    tally.phase = 'draining';
    return false;
  };

  const lane = async (): Promise<void> => {
    while (mayTake()) {
      let key: string | undefined;
      try {
        key = await pager.take();
      } catch (error) {
        if (!(error instanceof ActivityFailure)) throw error;
        broken ??= endedBy(finalFailure(error));
        return;
      }
      if (key === undefined || cancelled()) return;
      tally.running.add(key);
      setCurrentDetails(currentDetails(plan, tally));
      tally.add(key, await fillChild(plan, key));
      tally.running.delete(key);
      setCurrentDetails(currentDetails(plan, tally));
    }
  };

  tally.phase = 'filling';
  setCurrentDetails(currentDetails(plan, tally));
  const lanes = Array.from({ length: Math.min(plan.concurrency, plan.total - from.taken) }, lane);
  // Never Promise.all: a backfill that ended before its last child would leave it running, or wedge.
  const ended = await Promise.allSettled(lanes);
  if (cancelled()) return { outcome: 'cancelled', failure: wasCancelled(plan, tally) };
  // A defect: it holds this workflow task until a mended worker comes.
  const defect = ended.find((lane) => lane.status === 'rejected');
  if (defect) throw defect.reason;
  if (broken) return { outcome: 'failed', failure: broken };
  if (pager.exhausted) return { outcome: tally.failed > 0 ? 'incomplete' : 'done' };

  try {
    await condition(allHandlersFinished);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return { outcome: 'cancelled', failure: wasCancelled(plan, tally) };
  }
  return await continueAsNew<typeof backfill>(input, {
    partitionsPerRun,
    carried: { plan, cursor: pager.cursor, ...tally.counts(), failures: tally.failures },
  } satisfies Continuation);
}

async function planBackfill(args: readonly unknown[]): Promise<PlannedBackfill> {
  const info = workflowInfo();
  const asOf = info.typedSearchAttributes.get(SCHEDULED_START) ?? info.startTime;
  try {
    return await control().planBackfill({ arguments: args, id: info.workflowId, asOf: asOf.toISOString() });
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    if (cancelled()) throw new CancelledFailure('Cancelled before anything was begun.');
    throw endedBy(finalFailure(error));
  }
}

/** Says in the ledger how the backfill ended, for those who look while no worker runs. The ledger away, it ends all the same. */
async function endBackfill(plan: BackfillPlan, tally: Tally, outcome: BackfillOutcome): Promise<void> {
  const { pipeline, policy, run } = plan;
  try {
    await CancellationScope.nonCancellable(() =>
      control(END_WITHIN_MS).endBackfill({ pipeline, ledger: policy.ledger, run, outcome, ...tally.counts() }),
    );
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log.error('The end of the backfill could not be recorded in the ledger', {
      pipeline,
      failure: finalFailure(error).message,
    });
  }
}

/** What continue-as-new handed on. In a first run the second argument is a caller's, for the plan to judge. */
function handedOn(args: readonly unknown[]): Continuation {
  const given = args[1] as Continuation | null | undefined;
  const carried = workflowInfo().continuedFromExecutionRunId === undefined ? undefined : given?.carried;
  const partitionsPerRun = typeof given?.partitionsPerRun === 'number' ? given.partitionsPerRun : undefined;
  return { partitionsPerRun, carried };
}

function progress(input: unknown, plan: BackfillPlan | undefined, tally: Tally): Progress {
  const given = (input as { pipeline?: unknown } | null | undefined)?.pipeline;
  return {
    pipeline: plan?.pipeline ?? (typeof given === 'string' ? given : ''),
    first: plan?.first,
    last: plan?.last,
    total: plan?.total ?? 0,
    ...tally.counts(),
    running: [...tally.running],
    failures: tally.failures,
    phase: tally.phase,
  };
}

function result(plan: BackfillPlan, tally: Tally): BackfillResult {
  const { pipeline, first, last, total, notes } = plan;
  return { pipeline, first, last, total, ...tally.counts(), failures: tally.failures, notes };
}

function incomplete(plan: BackfillPlan, tally: Tally): ApplicationFailure {
  const named = tally.failures.map(({ key, type }) => `${key} (${type})`).join(', ');
  const more = tally.failed > tally.failures.length ? ', …' : '';
  return ApplicationFailure.nonRetryable(
    `${tally.failed} of ${plan.total} partitions of ${plan.pipeline} failed: ${named}${more}. They hold what they held before. ` +
      'Mend the cause, then run it again with only: ["failed"].',
    'BackfillIncomplete',
    result(plan, tally),
  );
}

function wasCancelled(plan: BackfillPlan, tally: Tally): CancelledFailure {
  return new CancelledFailure(
    `Cancelled: ${tally.filled} of ${plan.total} partitions of ${plan.pipeline} are filled, ${tally.failed} failed.`,
  );
}

function cancelled(): boolean {
  return CancellationScope.current().consideredCancelled;
}
