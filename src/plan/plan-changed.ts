import { PARTITION_STATES } from '../contract.js';
import { Failure } from '../failure.js';
import { type PlanIdentity, readPlanId, type ReasonCounts } from './plan-id.js';
import type { Plan } from './resolve-plan.js';

/** Throws `PlanChanged`, as {@link planChange} says it, where today's plan is not the one that was asked for. */
export function judgePlan(asked: string, plan: Pick<Plan, 'pipeline' | 'id'>): void {
  const change = planChange(asked, plan);
  if (change) throw change;
}

/**
 * Holds today's plan against the id of the one that was asked for. Where they differ: `PlanChanged`, with counts then and now and
 * whether the query changed. Throws `InvalidInput` for an id that is none.
 */
export function planChange(asked: string, { pipeline, id }: Pick<Plan, 'pipeline' | 'id'>): Failure | undefined {
  const [then, now] = [readPlanId(asked), readPlanId(id)];
  if (asked === id) return undefined;
  return new Failure(
    'PlanChanged',
    `The plan of ${pipeline} is no longer the one asked for. Then: ${countsText(then.counts)}; now: ${countsText(now.counts)}. ` +
      `${listChange(then, now)}${queryChange(then, now)} Nothing was begun. ` +
      'See the difference with `repave plan … --against <the kept --json>`, then run the plan of today by its id: ' +
      `${id}.`,
  );
}

/** What the counts do not say of the list. */
function listChange(then: PlanIdentity, now: PlanIdentity): string {
  if (then.digest === now.digest) return 'The same partitions for the same reasons. ';
  const asMany = PARTITION_STATES.every((state) => then.counts[state] === now.counts[state]);
  return asMany ? 'As many for each reason, but not the same ones. ' : '';
}

function queryChange(then: PlanIdentity, now: PlanIdentity): string {
  return then.query === now.query
    ? 'The query is the same.'
    : `The query changed: ${then.query} then, ${now.query} now.`;
}

/** `5 partitions (3 failed, 2 missing)`. */
export function countsText(counts: ReasonCounts): string {
  const total = PARTITION_STATES.reduce((sum, state) => sum + counts[state], 0);
  const reasons = PARTITION_STATES.filter((state) => counts[state] > 0).map((state) => `${counts[state]} ${state}`);
  const what = `${total} partition${total === 1 ? '' : 's'}`;
  return reasons.length === 0 ? what : `${what} (${reasons.join(', ')})`;
}
