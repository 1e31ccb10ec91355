import { ActivityFailure, CancellationScope, isCancellation, log } from '@temporalio/workflow';
import type { BackfillPlan } from '../activities/messages.js';
import type { CarriedSetting } from './carried.js';
import { control } from './control.js';
import { finalFailure } from './final-failure.js';
import { plannedPlace } from './planned-place.js';
import type { Steering } from './steering.js';

/** How long the ledger may be away before it is left untold. */
const NOTE_WITHIN_MS = 10 * 60_000;

/** Tells the ledger how a backfill is set, for those who look while no worker runs: one word at a time, the newest wins. */
export class LedgerNotes {
  #open: { readonly plan: BackfillPlan; readonly steering: Steering } | undefined;
  #untold: boolean;
  #wentOnAfter: string | undefined;
  #telling: Promise<void> | undefined;
  #scope: CancellationScope | undefined;

  constructor(carried?: CarriedSetting) {
    this.#untold = carried?.untold ?? false;
    this.#wentOnAfter = carried?.wentOnAfter;
  }

  /** What the ledger has not heard yet. */
  get carried(): Pick<CarriedSetting, 'untold' | 'wentOnAfter'> {
    return { untold: this.#untold || undefined, wentOnAfter: this.#wentOnAfter };
  }

  /** From here on it is told, also what it has missed so far. */
  open(plan: BackfillPlan, steering: Steering): void {
    this.#open = { plan, steering };
    if (this.#untold) this.tell();
  }

  /** To be called after each change. */
  tell(): void {
    this.#untold = true;
    if (this.#open) this.#telling ??= this.#tellAll();
  }

  /** To be called where the ledger has it ended, since a time by its clock, and it goes on. */
  goesOnAfter(endedAt: string | undefined): void {
    this.#wentOnAfter = endedAt;
    this.tell();
  }

  /** From here on nothing is told, and nothing is on its way any more. */
  async close(): Promise<void> {
    this.#open = undefined;
    this.#scope?.cancel();
    await this.#telling;
  }

  async #tellAll(): Promise<void> {
    try {
      while (this.#untold && this.#open) await this.#tellOnce(this.#open.plan, this.#open.steering);
    } finally {
      this.#telling = undefined;
    }
  }

  async #tellOnce({ pipeline, policy, run }: BackfillPlan, steering: Steering): Promise<void> {
    const { concurrency = 0, paused, stopping } = steering.steered();
    const wentOnAfter = this.#wentOnAfter;
    const note = { pipeline, ...plannedPlace(policy), run, concurrency, paused, stopping, wentOnAfter };
    this.#untold = false;
    const scope = (this.#scope = new CancellationScope());
    try {
      await scope.run(() => control(NOTE_WITHIN_MS).noteBackfill(note));
      this.#wentOnAfter = undefined;
    } catch (error) {
      if (isCancellation(error) || scope.consideredCancelled) this.#untold = true;
      else if (!(error instanceof ActivityFailure)) throw error;
      else {
        log.error('How the backfill is set could not be noted in the ledger', {
          pipeline,
          failure: finalFailure(error).message,
        });
      }
      if (CancellationScope.current().consideredCancelled) this.#open = undefined;
    }
  }
}
