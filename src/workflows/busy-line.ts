import { ActivityFailure, CancellationScope, isCancellation } from '@temporalio/workflow';
import type { BackfillPlan } from '../activities/messages.js';
import { MAX_CONCURRENCY } from '../contract.js';
import type { BusyKeys } from './carried.js';
import { isTimeUp, waiting } from './control.js';
import { type ChildOutcomes, failedAll, runsOf } from './fill-child.js';
import type { WaitingClock } from './waiting-clock.js';

/** Partitions that other runs fill: one activity waits for the first of these runs to end, however many there are. */
export class BusyLine {
  readonly #clock: WaitingClock;
  #waiting: BusyKeys[];
  /** Those whose other run has ended. */
  readonly #free: BusyKeys[] = [];
  /** Runs that are waited for now. */
  #awaited: readonly BusyKeys[] | undefined;

  /** `clock`: by which the groups have waited. */
  constructor(clock: WaitingClock, carried: readonly BusyKeys[] = []) {
    this.#clock = clock;
    this.#waiting = [...carried];
  }

  /** Keys in the line. */
  get size(): number {
    return this.groups.reduce((sum, { keys }) => sum + keys.length, 0);
  }

  /** What waits, to be carried into another run. */
  get groups(): readonly BusyKeys[] {
    return [...this.#free, ...this.#waiting];
  }

  get hasFree(): boolean {
    return this.#free.length > 0;
  }

  /** Whether {@link awaitFirst} is to be called. */
  get wantsAwaiting(): boolean {
    return this.#awaited === undefined && this.#waiting.length > 0;
  }

  /** Whether the wait that goes on leaves out runs that it has room for. */
  get awaitsTooFew(): boolean {
    const awaited = this.#awaited?.length ?? MAX_CONCURRENCY;
    return awaited < MAX_CONCURRENCY && awaited < this.#waiting.length;
  }

  add(group: BusyKeys): void {
    this.#waiting.push(group);
  }

  /** Takes out what is free to be tried again. */
  take(): BusyKeys | undefined {
    return this.#free.shift();
  }

  has(key: string): boolean {
    return this.groups.some(({ keys }) => keys.includes(key));
  }

  /**
   * Waits until a run has ended, and frees what of its keys is still wanted; and at most until the first group's time is over,
   * `giveUpAfterMs` since it was met: that one is freed for its last try, which says how it stands. Returns how the others
   * ended: skipped, or, where it cannot be waited for, failed. Cancelled, it is as if it had not begun.
   */
  async awaitFirst(plan: BackfillPlan): Promise<ChildOutcomes> {
    const { pipeline, policy, only } = plan;
    const awaited = [...this.#waiting].sort((a, b) => a.since - b.since).slice(0, MAX_CONCURRENCY);
    this.#awaited = awaited;
    const first = awaited[0]?.since ?? Infinity;
    const outcomes = new Map<string, { readonly kind: 'skipped' }>();
    try {
      const { ended } = await waiting(this.#clock.reaches(first + policy.giveUpAfterMs)).awaitPartitions({
        pipeline,
        ledger: policy.ledger,
        runs: awaited.map(({ id, keys }) => ({ id, keys })),
        only,
        fingerprint: policy.fingerprint,
      });
      // Several groups may wait for one run: what is left of a batch in several pieces.
      const wantedOf = new Map<string, Set<string>>();
      for (const { id, wantedKeys } of ended) wantedOf.set(id, new Set([...(wantedOf.get(id) ?? []), ...wantedKeys]));
      for (const group of awaited) {
        const wanted = wantedOf.get(group.id);
        if (!wanted) continue;
        this.#waiting = this.#waiting.filter((other) => other !== group);
        // One that has failed in this backfill, and is filled again because a person says so, is always wanted.
        const tried = (key: string): boolean => group.retry === true || wanted.has(key);
        for (const key of group.keys) if (!tried(key)) outcomes.set(key, { kind: 'skipped' });
        for (const keys of runsOf(group.keys, tried)) this.#free.push({ ...group, keys });
      }
      return outcomes;
    } catch (error) {
      if (isCancellation(error) || CancellationScope.current().consideredCancelled) return outcomes;
      if (!(error instanceof ActivityFailure)) throw error;
      if (isTimeUp(error)) {
        this.#release(
          awaited.filter(({ since }) => since <= Math.max(first, this.#clock.now() - policy.giveUpAfterMs)),
        );
        return outcomes;
      }
      this.#waiting = this.#waiting.filter((group) => !awaited.includes(group));
      return failedAll(
        awaited.flatMap(({ keys }) => keys),
        error,
      );
    } finally {
      this.#awaited = undefined;
    }
  }

  /** Has groups tried again without a word of their runs. */
  #release(groups: readonly BusyKeys[]): void {
    this.#waiting = this.#waiting.filter((group) => !groups.includes(group));
    this.#free.push(...groups);
  }
}
