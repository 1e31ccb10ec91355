import {
  ActivityFailure,
  allHandlersFinished,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineQuery,
  isCancellation,
  log,
  patched,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { BackfillPlan, PlannedBackfill } from '../activities/messages.js';
import { PROGRESS_QUERY, type BackfillOutcome, type BackfillResult, type Progress } from '../contract.js';
import { awaitDayRun } from './await-day-run.js';
import type { CarriedDownstream, Continuation } from './carried.js';
import { control, planning } from './control.js';
import { currentDetails } from './details.js';
import { type Downstream, fillDownstream } from './downstream.js';
import { incomplete, incompleteDownstream, resultOf, wasCancelled } from './ending.js';
import { endedBy, finalFailure } from './final-failure.js';
import { firstPage } from './key-pager.js';
import { Lanes } from './lanes.js';
import { LedgerNotes } from './ledger-notes.js';
import { setLevers } from './levers.js';
import { Notices, tellOfUnplanned } from './notices.js';
import { plannedPlace } from './planned-place.js';
import { progressOf } from './progress.js';
import { RetryPass } from './retry-pass.js';
import { markBackfill } from './search-attributes.js';
import { scheduled } from './scheduled.js';
import type { Shared } from './shared.js';
import { Steering } from './steering.js';
import { Tally } from './tally.js';

const progressQuery = defineQuery<Progress>(PROGRESS_QUERY);

/** How long the ledger may be away before a backfill ends without its last word there. */
const END_WITHIN_MS = 10 * 60_000;

/**
 * Fills many partitions, one child workflow each, `concurrency` at once. Takes one `BackfillInput`, judged by its first
 * activity. A partition's failure stops no other, unless `onFailure` or `canary` says so; with some failed it ends as
 * `BackfillIncomplete`, whose first detail is the {@link BackfillResult}. Levers steer it for as long as it lives. Cancelled,
 * it starts nothing more and ends once every child is rolled back. The second argument is what its own continue-as-new hands on.
 */
export async function backfill(...args: unknown[]): Promise<BackfillResult> {
  const [input] = args;
  const continuation = handedOn(args);
  const { carried } = continuation;
  const tally = new Tally(carried);
  const retry = new RetryPass(carried?.retry);
  const notes = new LedgerNotes(carried?.setting);
  const notices = new Notices(tally, carried?.setting);
  let plan = carried?.plan;
  const show = (): void => setCurrentDetails(currentDetails(progressOf(input, plan, tally, steering)));
  const steering = new Steering(carried?.setting, retry, tally.pace, () => {
    notes.tell();
    notices.changed(steering.paused);
    show();
  });
  if (plan) steering.follow(plan);
  // Before anything is waited for: an update that came with the first task finds its handler.
  setHandler(progressQuery, () => progressOf(input, plan, tally, steering), {
    description: 'Counts, rate and time left, what runs now, the first failures',
  });
  setLevers(steering);

  if (!plan) await awaitDayRun(input, steering);
  const planned = plan ? { plan, keys: [] } : await planBackfill(args);
  plan = planned.plan;
  if (plan.dryRun) return resultOf(plan, tally, false);
  steering.follow(plan);
  notices.open(plan);
  if (!carried) markBackfill(plan);
  if (!carried) tally.pace.restart();

  const shared = { plan, tally, steering, retry, notices, show };
  const { partitionsPerRun } = continuation;
  const lanes = new Lanes(shared, firstPage(planned), carried, partitionsPerRun);
  return await fillAll({ ...shared, input, notes, lanes, partitionsPerRun }, carried?.downstream);
}

interface Filling extends Shared {
  readonly input: unknown;
  readonly notes: LedgerNotes;
  readonly lanes: Lanes;
  readonly partitionsPerRun: number | undefined;
}

/** Runs the lanes until all keys are done, or a lever, a cancel or a failure of the plan itself has ended them. May continue as new. */
async function fillAll(filling: Filling, before?: CarriedDownstream): Promise<BackfillResult> {
  const { plan, tally, steering, lanes, notes, notices, show } = filling;
  let downstream: Downstream | undefined = before;
  for (;;) {
    await runLanes(filling);
    if (plan.downstream && endOf(filling)?.outcome === 'done') {
      notes.open(plan, steering);
      downstream ??= await fillDownstream(filling);
      await notes.close();
      // A lever may have made work again meanwhile.
      if (!cancelled() && !steering.stopping && !lanes.done) continue;
    }
    const ending = endOf(filling, downstream);
    if (!ending) return await goOn(filling, downstream);
    tally.phase = 'ended';
    show();
    const endedAt = await endBackfill(plan, tally, ending.outcome);
    // A lever that came while the last word was said may have made work again.
    const goesOn = (): boolean => !ending.failure && !cancelled() && !steering.stopping && !lanes.done;
    // A cancel that came meanwhile finds nothing left to cancel, but a failure now counts as cancelled. One that comes later finds the
    // end told.
    const cancelledLate = !ending.failure && tally.failed > 0 && cancelled();
    const outcome = cancelledLate ? 'cancelled' : ending.outcome;
    // The last word stands.
    if (cancelledLate && patched('cancelled-late')) await endBackfill(plan, tally, outcome);
    if (plan.notifies && !goesOn()) await notices.ended(outcome, whyEnded({ ...ending, outcome }, steering));
    if (goesOn()) {
      notes.goesOnAfter(endedAt);
      continue;
    }
    if (ending.failure) throw ending.failure;
    if (cancelledLate) throw wasCancelled(plan, tally);
    if (tally.failed > 0) throw incomplete(plan, tally, ending.stopped, steering.stoppedSince);
    return resultOf(plan, tally, ending.stopped, downstream);
  }
}

/** Returns once nothing runs, nothing is on its way, and no lever is being answered. */
async function runLanes({ tally, lanes, notes, notices, plan, steering, show }: Filling): Promise<void> {
  do {
    tally.phase = 'filling';
    show();
    notes.open(plan, steering);
    await lanes.run();
    await notes.close();
    if (plan.notifies) await notices.settled();
    // Never in a cancelled scope, where it would not wait. Handlers wait for nothing themselves.
    await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  } while (!lanes.over);
}

interface Ending {
  readonly outcome: BackfillOutcome;
  readonly stopped: boolean;
  readonly failure?: Error;
}

/** How it has ended; undefined where another run is to go on. */
function endOf({ plan, tally, steering, lanes }: Filling, downstream?: Downstream): Ending | undefined {
  if (cancelled()) return { outcome: 'cancelled', stopped: false, failure: wasCancelled(plan, tally) };
  if (lanes.broken) return { outcome: 'failed', stopped: false, failure: lanes.broken };
  if (!lanes.done && !steering.stopping) return undefined;
  if (downstream?.broken) return { outcome: 'failed', stopped: false, failure: downstream.broken };
  if (downstream && downstream.wanting.length > 0) {
    return { outcome: 'incomplete', stopped: false, failure: incompleteDownstream(plan, tally, downstream) };
  }
  const stopped = !lanes.done || downstream?.stopped === true;
  return { outcome: tally.failed > 0 ? 'incomplete' : stopped ? 'stopped' : 'done', stopped };
}

/**
 * Why a backfill has ended by itself before it was through, or what depends on it is not filled; undefined where all is, or
 * somebody has ended it.
 */
function whyEnded({ outcome, failure }: Ending, { stoppedSince }: Steering): string | undefined {
  return outcome === 'cancelled' ? stoppedSince : (failure?.message ?? stoppedSince);
}

async function goOn(filling: Filling, downstream: Downstream | undefined): Promise<never> {
  const { input, plan, tally, steering, lanes, notes, notices, partitionsPerRun } = filling;
  const setting = { ...steering.carried, ...notes.carried, ...notices.carried };
  const isSet = Object.values(setting).some((value) => value !== undefined);
  return await continueAsNew<typeof backfill>(input, {
    partitionsPerRun,
    carried: {
      plan,
      ...lanes.carried,
      ...tally.counts(),
      failures: tally.failures,
      ...(tally.leftNotReady ? { leftNotReady: tally.leftNotReady } : {}),
      pace: tally.pace.carried,
      ...(isSet ? { setting } : {}),
      ...(downstream && !downstream.broken ? { downstream } : {}),
    },
  } satisfies Continuation);
}

async function planBackfill(args: readonly unknown[]): Promise<PlannedBackfill> {
  const info = workflowInfo();
  const { at, by: scheduledBy } = scheduled();
  try {
    return await planning({ waits: scheduledBy !== undefined }).planBackfill({
      arguments: args,
      id: info.workflowId,
      asOf: (at ?? info.startTime).toISOString(),
      ...(scheduledBy === undefined ? {} : { scheduledBy, startedAt: info.startTime.toISOString() }),
    });
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    if (cancelled()) throw new CancelledFailure('Cancelled before anything was begun.');
    const failure = finalFailure(error);
    if (scheduledBy !== undefined && failure.notifies) await tellOfUnplanned(args[0], failure);
    throw endedBy(failure);
  }
}

/**
 * Says in the ledger how the backfill ended, for those who look while no worker runs, and returns when, by the ledger's clock.
 * The ledger away, it ends all the same.
 */
async function endBackfill(plan: BackfillPlan, tally: Tally, outcome: BackfillOutcome): Promise<string | undefined> {
  const { pipeline, policy, run } = plan;
  try {
    const ended = await CancellationScope.nonCancellable(() =>
      control(END_WITHIN_MS).endBackfill({ pipeline, ...plannedPlace(policy), run, outcome, ...tally.counts() }),
    );
    return ended?.endedAt;
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log.error('The end of the backfill could not be recorded in the ledger', {
      pipeline,
      failure: finalFailure(error).message,
    });
    return undefined;
  }
}

/** What continue-as-new handed on. In a first run the second argument is a caller's, for the plan to judge. */
function handedOn(args: readonly unknown[]): Continuation {
  const given = args[1] as Continuation | null | undefined;
  const carried = workflowInfo().continuedFromExecutionRunId === undefined ? undefined : given?.carried;
  const partitionsPerRun = typeof given?.partitionsPerRun === 'number' ? given.partitionsPerRun : undefined;
  return { partitionsPerRun, carried };
}

function cancelled(): boolean {
  return CancellationScope.current().consideredCancelled;
}
