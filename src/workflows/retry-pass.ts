import { ActivityFailure, CancellationScope, isCancellation, log } from '@temporalio/workflow';
import type { BackfillPlan } from '../activities/messages.js';
import type { CarriedRetry } from './carried.js';
import { control } from './control.js';
import { finalFailure } from './final-failure.js';
import { plannedPlace } from './planned-place.js';

/** The lever `retryFailed`: the keys that have failed, read from the ledger page by page, each handed out once a pass. */
export class RetryPass {
  #active: boolean;
  #after: string | undefined;
  #another: boolean;
  #page: readonly string[] = [];
  #next = 0;
  #fetching = false;
  /** Keys that have ended well since the page was asked for: it may still have them as failed. */
  readonly #well = new Set<string>();

  constructor(carried?: CarriedRetry) {
    this.#active = carried !== undefined;
    this.#after = carried?.after;
    this.#another = carried?.another ?? false;
  }

  /** Begins a pass, or, while one goes on, another one behind it. */
  request(): void {
    if (this.#active) this.#another = true;
    else this.#active = true;
  }

  /** Whether there may be keys to come. */
  get active(): boolean {
    return this.#active;
  }

  /** Whether {@link fetch} is to be called. */
  get wantsPage(): boolean {
    return this.#active && !this.#fetching && this.#next >= this.#page.length;
  }

  get carried(): CarriedRetry | undefined {
    return this.#active ? { after: this.#after, another: this.#another || undefined } : undefined;
  }

  /** Whether {@link take} would hand out a key now, or pass one over. */
  has(running: (key: string) => boolean): boolean {
    const key = this.#page[this.#next];
    return key !== undefined && !running(key);
  }

  /** The next key, unless it runs: that one's end is waited for. Passes over keys that wait for another try anyway. */
  take(running: (key: string) => boolean, waits: (key: string) => boolean): string | undefined {
    while (this.has(running)) {
      const key = this.#page[this.#next] ?? '';
      this.#next += 1;
      this.#after = key;
      if (!this.#well.has(key) && !waits(key)) return key;
    }
    return undefined;
  }

  /** Told of each key that is filled or skipped. */
  endedWell(key: string): void {
    if (this.#active) this.#well.add(key);
  }

  /** Gets the next page; where there is none, the pass is over. Cancelled, it is as if it had not begun. */
  async fetch(plan: BackfillPlan): Promise<void> {
    this.#fetching = true;
    this.#well.clear();
    try {
      const { pipeline, policy, run } = plan;
      this.#page = await control().failedKeys({ pipeline, ...plannedPlace(policy), run, after: this.#after });
      this.#next = 0;
      if (this.#page.length === 0) this.#over();
    } catch (error) {
      if (isCancellation(error) || CancellationScope.current().consideredCancelled) return;
      if (!(error instanceof ActivityFailure)) throw error;
      log.error('The failed partitions could not be read from the ledger: they are not retried', {
        pipeline: plan.pipeline,
        failure: finalFailure(error).message,
      });
      this.#another = false;
      this.#over();
    } finally {
      this.#fetching = false;
    }
  }

  #over(): void {
    this.#active = this.#another;
    this.#another = false;
    this.#after = undefined;
  }
}
