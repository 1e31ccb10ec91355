import { patched } from '@temporalio/workflow';
import type { BusyKeys, CarriedBackfill, WaitingKeys } from './carried.js';
import { BusyLine } from './busy-line.js';
import { type Batch, KeyPager } from './key-pager.js';
import { nextPage } from './next-page.js';
import type { RetryPass } from './retry-pass.js';
import type { Shared } from './shared.js';
import type { WaitingClock } from './waiting-clock.js';
import { WaitingLine } from './waiting-line.js';

/** Keys on their way to a child; with `since`, ones that were tried before: by the waiting clock when first. */
export type Work = Pick<WaitingKeys, 'keys' | 'retry'> & Partial<Pick<WaitingKeys, 'since'>>;

type Carried = Pick<CarriedBackfill, 'cursor' | 'waiting' | 'busy' | 'retry'>;

/**
 * What of a backfill is still to be filled, in this order: keys that were not tried yet, busy ones whose other run has ended,
 * failed ones that are to be filled again, and those whose source was not ready, once their time has come.
 */
export class Remaining {
  readonly busy: BusyLine;
  readonly line: WaitingLine;
  /** Milliseconds since its first try after which what is not ready is left to the next heal; undefined where none is left. */
  readonly leavesAfterMs: number | undefined;
  readonly #pager: KeyPager;
  readonly #retry: RetryPass;
  readonly #clock: WaitingClock;
  readonly #canary: () => number | undefined;
  /** Keys that a child fills now. */
  readonly #inHand = new Set<string>();

  constructor({ plan, retry, steering }: Shared, page: readonly Batch[], carried: Carried | undefined) {
    this.#pager = new KeyPager(plan, carried?.cursor ?? { taken: 0 }, page, (behind) => nextPage(plan, behind));
    this.busy = new BusyLine(steering.clock, carried?.busy);
    this.line = new WaitingLine(carried?.waiting, () => this.busy.size, plan.maxWaiting);
    this.#retry = retry;
    this.#clock = steering.clock;
    this.#canary = () => steering.canary;
    // A heal that an older version has begun to fill replays as it was.
    const leaves = plan.leavesAfterMs !== undefined && patched('not-ready-left');
    this.leavesAfterMs = leaves ? plan.leavesAfterMs : undefined;
  }

  /** Keys taken so far, over all runs, not counting those that were taken again. */
  get taken(): number {
    return this.#pager.cursor.taken;
  }

  /** Whether every key has had its last try, or has it now. */
  get done(): boolean {
    return this.#pager.exhausted && this.line.size === 0 && this.busy.size === 0 && !this.#retry.active;
  }

  /** Whether {@link take} would find something, or something to wait for, now. */
  get hasSome(): boolean {
    return this.#hasUntried || this.busy.hasFree || this.#hasRetry || this.line.hasFree;
  }

  /** Whether the canary's keys have all had their last try, as far as no child has them now. */
  get canaryTried(): boolean {
    return !this.#hasUntried && this.line.size === 0 && this.busy.size === 0;
  }

  /** Whether the retry's next page is due: behind the keys that were not tried yet. */
  get wantsRetryPage(): boolean {
    return this.#pager.exhausted && this.#canary() === undefined && this.#retry.wantsPage;
  }

  /** Whether it is time to wait for other runs: nothing else is to be had. */
  get wantsAwaiting(): boolean {
    return this.busy.wantsAwaiting && !this.#hasUntried && !this.#hasRetry && !this.busy.hasFree;
  }

  /** Where a later run goes on. */
  get carried(): Carried {
    const moved = <Group extends BusyKeys | WaitingKeys>(group: Group): Group => ({
      ...group,
      since: this.#clock.carried(group.since),
    });
    const waiting = this.line.groups.map(moved);
    const busy = this.busy.groups.map(moved);
    const { carried: retry } = this.#retry;
    return {
      cursor: this.#pager.cursor,
      ...(waiting.length > 0 ? { waiting } : {}),
      ...(busy.length > 0 ? { busy } : {}),
      ...(retry ? { retry } : {}),
    };
  }

  /**
   * What is to be filled next; undefined where there is nothing for this lane. `held`: nothing may be taken any more; `ended`:
   * nor is anything to be waited for.
   */
  async take(held: () => boolean, ended: () => boolean): Promise<Work | undefined> {
    // What finds no room in the line is left, so that nothing is to be waited for before all others were tried.
    if (!this.line.full || this.leavesAfterMs !== undefined) {
      const keys = await this.#pager.take(() => held() || this.#canaryTaken);
      if (keys) return { keys };
    }
    if (held()) return undefined;
    const atOnce = this.#atOnce();
    if (atOnce) return atOnce;
    let sooner: Work | undefined;
    const waited = await this.line.next(() => held() || ended() || (sooner = this.#atOnce()) !== undefined);
    return waited ?? sooner;
  }

  /** To be called before and after a child has keys. */
  begin(keys: Batch): void {
    for (const key of keys) this.#inHand.add(key);
  }

  end(keys: Batch): void {
    for (const key of keys) this.#inHand.delete(key);
  }

  get #canaryTaken(): boolean {
    const canary = this.#canary();
    return canary !== undefined && this.taken >= canary;
  }

  get #hasUntried(): boolean {
    return !this.#pager.exhausted && !this.#canaryTaken;
  }

  get #mayRetry(): boolean {
    return this.#pager.exhausted && this.#canary() === undefined;
  }

  get #hasRetry(): boolean {
    return this.#mayRetry && this.#retry.has(this.#running);
  }

  /** What can be taken without waiting, behind the keys that were not tried yet. */
  #atOnce(): Work | undefined {
    const free: BusyKeys | undefined = this.busy.take();
    if (free) return free;
    const key = this.#mayRetry ? this.#retry.take(this.#running, this.#waits) : undefined;
    return key === undefined ? undefined : { keys: [key], retry: true };
  }

  readonly #running = (key: string): boolean => this.#inHand.has(key);

  readonly #waits = (key: string): boolean =>
    (this.line.size > 0 && this.line.has(key)) || (this.busy.size > 0 && this.busy.has(key));
}
