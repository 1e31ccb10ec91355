import type { PartitionState } from '../contract.js';
import { readPlanId } from './plan-id.js';
import type { Plan, PlanEntry } from './resolve-plan.js';

/** A plan that was kept. */
export interface KeptPlan {
  readonly id: string;
  /** Every partition of it, with its reason. */
  readonly reasons: ReadonlyMap<string, PartitionState>;
}

/** What tells today's plan from a kept one: each list in the calendar's order. */
export interface PlanDifference {
  readonly same: boolean;
  readonly queryChanged: boolean;
  /** In today's plan alone. */
  readonly came: readonly { readonly key: string; readonly reason: PartitionState }[];
  /** In the kept plan alone, with the reason it had. */
  readonly went: readonly { readonly key: string; readonly reason: PartitionState }[];
  readonly changed: readonly { readonly key: string; readonly from: PartitionState; readonly to: PartitionState }[];
}

/** Compares today's plan with a kept one, page by page as it is walked. */
export class Comparison {
  readonly #kept: KeptPlan;
  readonly #left: Map<string, PartitionState>;
  readonly #came: { key: string; reason: PartitionState }[] = [];
  readonly #changed: { key: string; from: PartitionState; to: PartitionState }[] = [];

  constructor(kept: KeptPlan) {
    this.#kept = kept;
    this.#left = new Map(kept.reasons);
  }

  take(page: readonly PlanEntry[]): void {
    for (const { key, reason } of page) {
      const before = this.#left.get(key);
      this.#left.delete(key);
      if (before === undefined) this.#came.push({ key, reason });
      else if (before !== reason) this.#changed.push({ key, from: before, to: reason });
    }
  }

  /** Once every page has been taken. */
  difference({ id }: Pick<Plan, 'id'>): PlanDifference {
    return {
      same: id === this.#kept.id,
      queryChanged: readPlanId(id).query !== readPlanId(this.#kept.id).query,
      came: this.#came.sort(byKey),
      went: [...this.#left].map(([key, reason]) => ({ key, reason })).sort(byKey),
      changed: this.#changed.sort(byKey),
    };
  }
}

/** Sorts by key, which is the calendar's order. */
export function byKey(a: { readonly key: string }, b: { readonly key: string }): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
