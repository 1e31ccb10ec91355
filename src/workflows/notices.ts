import { workflowInfo } from '@temporalio/workflow';
import type { BackfillPlan, NoticeRequest } from '../activities/messages.js';
import {
  type BackfillInput,
  type BackfillOutcome,
  type NoticeEvent,
  type PartitionFailure,
  type Pause,
  shortened,
} from '../contract.js';
import type { CarriedSetting, CarriedTold } from './carried.js';
import type { FinalFailure } from './final-failure.js';
import { plannedPlace } from './planned-place.js';
import { startNotice } from './start-notice.js';
import type { Tally } from './tally.js';

/**
 * What a backfill tells of itself, each event once however large it is: nothing where the worker that planned it had no notify
 * hook. Telling holds nothing up.
 */
export class Notices {
  readonly #tally: Tally;
  readonly #starting = new Set<Promise<void>>();
  #plan: BackfillPlan | undefined;
  #failed: boolean;
  #paused: number;
  #ended: number;
  #hasPausedItself: boolean;

  constructor(tally: Tally, carried: CarriedSetting | undefined) {
    this.#tally = tally;
    this.#failed = carried?.told?.failed ?? false;
    this.#paused = carried?.told?.paused ?? 0;
    this.#ended = carried?.told?.ended ?? 0;
    this.#hasPausedItself = isOwn(carried?.paused);
  }

  /** From here on it tells, of the plan's backfill. */
  open(plan: BackfillPlan): void {
    if (plan.notifies) this.#plan = plan;
  }

  /** What the next run must not tell again. */
  get carried(): Pick<CarriedSetting, 'told'> {
    const told: CarriedTold = {
      failed: this.#failed || undefined,
      paused: this.#paused || undefined,
      ended: this.#ended || undefined,
    };
    return { told: Object.values(told).some((value) => value !== undefined) ? told : undefined };
  }

  /** To be called for each partition that has failed: of the first one it tells. */
  failed({ key, type, message }: PartitionFailure): void {
    if (this.#failed || !this.#plan) return;
    this.#failed = true;
    this.#tell('partition-failed', 1, { key, failures: [{ key, type, message: shortened(message) }] });
  }

  /** To be called after each change: where the backfill has paused itself since, it tells of that. */
  changed(paused: Pause | undefined): void {
    const before = this.#hasPausedItself;
    this.#hasPausedItself = isOwn(paused);
    if (before || !this.#hasPausedItself || !this.#plan) return;
    this.#paused += 1;
    this.#tell('backfill-paused', this.#paused, { paused, failures: this.#tally.failures });
  }

  /**
   * Tells how the backfill has ended, and which partitions it has tried for the last time; of one that had nothing to do,
   * nothing. Returns once that is on its way.
   */
  async ended(outcome: BackfillOutcome, reason: string | undefined): Promise<void> {
    const { total, tries } = this.#plan ?? { total: 0 };
    if (total === 0) return;
    this.#ended += 1;
    const { failures } = this.#tally;
    if (tries !== undefined && this.#tally.failed > 0) this.#tell('heal-gave-up', this.#ended, { tries });
    this.#tell('backfill-ended', this.#ended, { outcome, reason: reason && shortened(reason), failures });
    await this.settled();
  }

  /** Returns once all that was told is on its way. */
  async settled(): Promise<void> {
    while (this.#starting.size > 0) await Promise.all(this.#starting);
  }

  /** Tells of an event, of which this is the nth of its kind. */
  #tell(event: Exclude<NoticeEvent, 'test'>, nth: number, facts: Partial<NoticeRequest>): void {
    if (!this.#plan) return;
    const { pipeline, run, total, policy } = this.#plan;
    const { ledger, database, source } = plannedPlace(policy);
    const start = startNotice({
      id: `${run}/${event}${nth === 1 ? '' : `/${nth}`}`,
      event,
      at: new Date(Date.now()).toISOString(),
      pipeline,
      ledger,
      database,
      source,
      backfill: { id: workflowInfo().workflowId, run },
      counts: { total, ...this.#tally.counts() },
      ...facts,
    }).finally(() => this.#starting.delete(start));
    this.#starting.add(start);
  }
}

/**
 * Tells that a scheduled backfill has ended before it had a plan: nobody waits for its answer. Returns once that is on its way.
 * Of an input that names no pipeline nothing is told.
 */
export async function tellOfUnplanned(input: unknown, { type, message }: FinalFailure): Promise<void> {
  const pipeline = (input as Partial<BackfillInput> | null | undefined)?.pipeline;
  if (typeof pipeline !== 'string') return;
  const { workflowId: id, runId: run } = workflowInfo();
  await startNotice({
    id: `${run}/backfill-ended`,
    event: 'backfill-ended',
    at: new Date(Date.now()).toISOString(),
    pipeline,
    backfill: { id, run },
    outcome: 'failed',
    reason: shortened(`${type}: ${message}`),
  });
}

function isOwn(paused: Pause | undefined): boolean {
  return paused !== undefined && paused.by !== 'lever';
}
