import type { BackfillPlan, Cursor } from '../activities/messages.js';
import { control } from './control.js';
import type { Batch } from './key-pager.js';

/** The keys of a plan behind its cursor. */
export async function nextPage(plan: BackfillPlan, cursor: Cursor): Promise<readonly Batch[]> {
  const { pipeline, policy, range, list, batch } = plan;
  const request = { pipeline, ledger: policy.ledger, range, list, cursor };
  if (batch !== undefined) return control().nextBatches({ ...request, batch });
  return (await control().nextKeys(request)).map((key) => [key]);
}
