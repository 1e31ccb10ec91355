import type { BackfillInput } from '../contract.js';
import type { Plan } from './resolve-plan.js';

/**
 * The input that runs exactly a plan, or fails as `PlanChanged`: what the plan was asked with, its open ends fixed, since `last`,
 * with its `lookback`, and a range without an end mean other partitions tomorrow.
 */
export function exactInput(input: BackfillInput, { asked, id }: Pick<Plan, 'asked' | 'id'>): BackfillInput {
  const { pipeline, keys, from: _from, to: _to, last: _last, lookback: _lookback, ...rest } = input;
  const { plan: _plan, dryRun: _dryRun, ...how } = rest;
  return { pipeline, ...(keys ? { keys } : asked), ...how, plan: id };
}
