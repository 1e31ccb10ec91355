import { ActivityFailure, CancellationScope, CancelledFailure, log, setCurrentDetails } from '@temporalio/workflow';
import { healScheduleId, scheduledRunId } from '../contract.js';
import { awaitRun } from './await-run.js';
import { finalFailure } from './final-failure.js';
import { scheduled } from './scheduled.js';
import type { Steering } from './steering.js';

/** The two schedules of a pipeline fire at one moment, in any order. */
const COMES_WITHIN_MS = 60_000;
/** A day's run may wait a day for what is not ready, and nothing else would be healed meanwhile. */
const WAITS_MS = 3_600_000;

/**
 * In a run that a pipeline's heal schedule has started, waits until the day's run of the same time has ended: what that one fills
 * is nothing to heal. Where there is none, or it takes longer than an hour, or somebody stops the heal, it goes on. Does nothing in
 * any other run. Throws as cancelled.
 */
export async function awaitDayRun(input: unknown, steering: Steering): Promise<void> {
  const pipeline = (input as { pipeline?: unknown } | null | undefined)?.pipeline;
  const { at, by } = scheduled();
  if (at === undefined || typeof pipeline !== 'string' || by !== healScheduleId(pipeline)) return;
  const id = scheduledRunId(pipeline, 'scheduled', at);
  setCurrentDetails(`Waits until the day's run ${id} has ended.`);
  try {
    // From now, since after an outage both may have been started long before either could begin.
    await awaitRun({ id, comesWithinMs: COMES_WITHIN_MS }, steering, Date.now() + WAITS_MS);
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    if (CancellationScope.current().consideredCancelled) {
      throw new CancelledFailure('Cancelled before anything was begun.');
    }
    log.warn('The day’s run was not waited for to its end', { id, failure: finalFailure(error).message });
  }
}
