import { Context } from '@temporalio/activity';
import type { BackfillInput } from '../contract.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { PlanningTimes } from '../plan/resolve-plan.js';
import { nothingDue } from '../plan/scheduled.js';
import type { Database } from '../warehouse/database.js';
import type { PlanBackfillRequest } from './messages.js';
import { sinceWhen } from './since-when.js';

/**
 * What `last` counts back from: now, or the time that a schedule's run was due. For such a run also since when it answers for what
 * was finished, and `nothing` says why nothing is due at all. Throws as {@link sinceWhen}.
 */
export async function planningTimes(
  { id, asOf, scheduledBy, startedAt }: Omit<PlanBackfillRequest, 'arguments'>,
  input: BackfillInput,
  pipeline: Pipeline,
  database: Database,
  now: Date,
): Promise<{ readonly times: PlanningTimes; readonly nothing?: string }> {
  const times = { now, asOf: new Date(asOf) };
  if (scheduledBy === undefined || input.last === undefined) return { times };
  const due = times.asOf > now ? now : times.asOf;
  const run = { pipeline: pipeline.name, id, scheduledBy, due, ...(startedAt && { startedAt: new Date(startedAt) }) };
  const before = await sinceWhen(Context.current().client, database, run);
  return { times: { ...times, before: before?.at }, nothing: nothingDue(input, pipeline, due, before) };
}
