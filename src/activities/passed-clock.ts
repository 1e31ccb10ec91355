import { Context } from '@temporalio/activity';
import type { PlanBackfillRequest } from './messages.js';

/** How far behind a clock may be to be waited for. */
const WAITED_FOR_MS = 60_000;

/** What a run's time is planned with. */
export interface PassedClock {
  readonly now: Date;
  /** Said to people. */
  readonly notes: readonly string[];
}

/**
 * Now, once that is no earlier than a schedule's run was due. Temporal starts none before its time, so where this machine's clock
 * is not there yet it is behind the server's: up to a minute is waited for, until the clock has passed it; one further behind is
 * told in a note, and the time that the run was due is taken for now. So no clock makes a run fill another date than its own. A
 * run that was asked for ahead of its time has the machine's. Throws as cancelled.
 */
export async function passedClock({
  asOf,
  scheduledBy,
  startedAt,
}: Pick<PlanBackfillRequest, 'asOf' | 'scheduledBy' | 'startedAt'>): Promise<PassedClock> {
  const due = new Date(asOf);
  const behindMs = due.getTime() - Date.now();
  if (behindMs <= 0 || scheduledBy === undefined || startedAt === undefined) return { now: new Date(), notes: [] };
  // The server's own machines may differ a little, too.
  if (Date.parse(startedAt) < due.getTime() - WAITED_FOR_MS) return { now: new Date(), notes: [] };
  if (behindMs > WAITED_FOR_MS) {
    const minutes = Math.round(behindMs / 60_000);
    const note =
      `The clock of the worker that planned this is at least ${minutes} min behind Temporal's server, which has started this run, ` +
      `due at ${due.toISOString()}: set it right.`;
    return { now: due, notes: [note] };
  }
  while (Date.now() < due.getTime()) await Context.current().sleep(due.getTime() - Date.now() + 1);
  return { now: new Date(), notes: [] };
}
