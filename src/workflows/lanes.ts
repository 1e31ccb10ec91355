import {
  ActivityFailure,
  type ApplicationFailure,
  CancellationScope,
  condition,
  isCancellation,
  workflowInfo,
} from '@temporalio/workflow';
import { keysName } from '../contract.js';
import { Background } from './background.js';
import type { CarriedBackfill } from './carried.js';
import { afterCanary } from './failure-rule.js';
import { fillWork, settle } from './fill-work.js';
import { endedBy, finalFailure } from './final-failure.js';
import type { Batch } from './key-pager.js';
import { Remaining, type Work } from './remaining.js';
import type { Shared } from './shared.js';

/** Events after which a run takes no more keys: what its lanes still write stays below the server's warning at 10,240. */
const MAX_EVENTS = 8_000;

/** The lanes of one run of a backfill: each fills by one child after the other, until nothing is left or the run is to end. */
export class Lanes {
  readonly #shared: Shared;
  readonly #remaining: Remaining;
  readonly #background = new Background();
  readonly #scope = CancellationScope.current();
  readonly #lanes = new Set<Promise<void>>();
  readonly #from: number;
  readonly #cap: number;
  /** Keys of this run that were tried before. */
  #again = 0;
  #broken: ApplicationFailure | undefined;
  #defect: { readonly reason: unknown } | undefined;
  #awaiting: CancellationScope | undefined;
  /** Runs that older versions have planned replay only with lanes that never come back, until something new happens to them. */
  #regrow: boolean;

  /** `cap`: keys after which this run takes no more. */
  constructor(shared: Shared, page: readonly Batch[], carried: CarriedBackfill | undefined, cap = Infinity) {
    this.#shared = shared;
    this.#remaining = new Remaining(shared, page, carried);
    this.#from = this.#remaining.taken;
    this.#cap = cap;
    this.#regrow = shared.plan.policy.backfill !== undefined;
    this.#count();
  }

  /** Whether every key has had its last try. */
  get done(): boolean {
    return this.#remaining.done;
  }

  /** Whether nothing runs and this run is to start nothing more. */
  get over(): boolean {
    return this.#lanes.size === 0 && (this.done || this.#ended);
  }

  /** What ended the lanes before their time: the next keys are not to be had. */
  get broken(): ApplicationFailure | undefined {
    return this.#broken;
  }

  /** Where a later run goes on. */
  get carried(): Remaining['carried'] {
    return this.#remaining.carried;
  }

  /**
   * Runs the lanes until they are over, and may be called again where a lever has made work since. Throws only where a lane has
   * a defect, which holds this workflow task until it is mended.
   */
  async run(): Promise<void> {
    for (;;) {
      this.#grow();
      this.#look();
      if (this.over) break;
      // Also a cancelled backfill waits until its last child has ended: it would leave that one running, or wedge.
      await CancellationScope.nonCancellable(() => condition(() => this.over || this.#mayGrow || this.#mayLook));
    }
    await this.#background.end();
    this.#count();
    const defect = this.#defect ?? this.#background.defect;
    if (defect && !this.#cancelled) throw defect.reason;
  }

  get #cancelled(): boolean {
    return this.#scope.consideredCancelled;
  }

  get #limit(): number {
    return this.#shared.steering.concurrency ?? this.#shared.plan.concurrency;
  }

  /** Whether the run has come to its end, whatever is left. */
  get #ended(): boolean {
    const defect = this.#defect ?? this.#background.defect;
    return this.#cancelled || !!this.#broken || !!defect || this.#shared.steering.stopping || this.#full();
  }

  /** Whether nothing may be taken for now, and nothing that is at work is to be waited for. */
  get #held(): boolean {
    const { steering } = this.#shared;
    const canaryFailed = steering.canary !== undefined && steering.failedSince > 0;
    return steering.paused !== undefined || steering.stopping || canaryFailed;
  }

  get #mayGrow(): boolean {
    const regrow = this.#regrow || this.#shared.steering.touched || this.#lanes.size === 0;
    if (!regrow || this.#lanes.size >= this.#limit) return false;
    return this.#remaining.hasSome && !this.#held && !this.#ended;
  }

  /** Starts as many lanes as there is room and work for. */
  #grow(): void {
    if (!this.#mayGrow) return;
    while (this.#lanes.size < this.#limit && this.#remaining.hasSome) {
      const lane: Promise<void> = this.#lane()
        .catch((reason: unknown) => {
          this.#defect ??= { reason };
        })
        .finally(() => this.#lanes.delete(lane));
      this.#lanes.add(lane);
    }
  }

  async #lane(): Promise<void> {
    while (this.#mayTake) {
      let work: Work | undefined;
      try {
        work = await this.#remaining.take(
          () => this.#held || this.#tooMany,
          () => this.#broken !== undefined || this.#full(),
        );
      } catch (error) {
        if (isCancellation(error)) return;
        if (!(error instanceof ActivityFailure)) throw error;
        this.#broken ??= endedBy(finalFailure(error));
        return;
      }
      if (!work || this.#cancelled) return;
      const { running } = this.#shared.tally;
      const name = keysName(work.keys);
      running.set(name, Date.now());
      this.#show();
      if (work.retry || work.since !== undefined) this.#again += work.keys.length;
      if (await fillWork(this.#shared, this.#remaining, work)) this.#regrow = true;
      running.delete(name);
      this.#show();
    }
  }

  get #tooMany(): boolean {
    return this.#lanes.size > this.#limit;
  }

  get #mayTake(): boolean {
    return !this.#ended && !this.#held && !this.#tooMany && !this.done;
  }

  /** Whether this run has had its share, and another is to go on. */
  #full(): boolean {
    const info = workflowInfo();
    const taken = this.#remaining.taken - this.#from + this.#again;
    if (taken < this.#cap && !info.continueAsNewSuggested && info.historyLength <= MAX_EVENTS) return false;
    this.#shared.tally.phase = 'draining';
    return true;
  }

  /** Whether something is to be done beside the lanes. */
  get #mayLook(): boolean {
    if (this.#ended) return false;
    return this.#canaryOver || this.#mayRead || this.#mayAwait || this.#awaitsTooFew;
  }

  get #mayRead(): boolean {
    return this.#remaining.wantsRetryPage && !this.#held;
  }

  get #awaitsTooFew(): boolean {
    return this.#awaiting !== undefined && this.#remaining.busy.awaitsTooFew;
  }

  get #mayAwait(): boolean {
    return this.#remaining.wantsAwaiting && !this.#held;
  }

  get #canaryOver(): boolean {
    const { steering } = this.#shared;
    if (steering.canary === undefined || this.#lanes.size > 0) return false;
    return steering.failedSince > 0 || this.#remaining.canaryTried;
  }

  /** Does what is to be done beside the lanes. */
  #look(): void {
    if (this.#ended) return;
    const { plan, tally, steering, retry } = this.#shared;
    if (this.#canaryOver) {
      if (this.done) steering.passCanary();
      else afterCanary(plan, steering, tally.failures);
      this.#regrow = true;
    }
    if (this.#mayRead) this.#background.start(() => retry.fetch(plan));
    if (this.#awaitsTooFew) {
      this.#awaiting?.cancel();
      this.#awaiting = undefined;
    }
    if (this.#mayAwait) this.#awaiting = this.#background.start(() => this.#awaitOthers());
  }

  /** Waits for another run to end; what that leaves is for the lanes. */
  async #awaitOthers(): Promise<void> {
    const outcomes = await this.#remaining.busy.awaitFirst(this.#shared.plan);
    for (const [key, outcome] of outcomes) settle(this.#shared, this.#remaining, key, outcome);
    this.#regrow = true;
    this.#show();
  }

  #count(): void {
    const { tally } = this.#shared;
    tally.waiting = this.#remaining.line.size;
    tally.firstWaiting = this.#remaining.line.first;
    tally.busy = this.#remaining.busy.size;
  }

  #show(): void {
    this.#count();
    this.#shared.show();
  }
}
