import {
  type Client,
  type ScheduleDescription,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type ScheduleOptions,
} from '@temporalio/client';
import { healScheduleId, scheduleId } from '../contract.js';
import { Failure } from '../failure.js';
import {
  compareSchedules,
  keeperOf,
  ledgerOf,
  othersOwn,
  type ScheduleChange,
  type ScheduleComparison,
} from './schedule-changes.js';
import { changesBetween, ledgerIn, requestedFacts, standingFacts, type StandingSchedules } from './schedule-facts.js';
import { dayOptions, healOptions, LEDGER_FIELD, type ScheduleRequest } from './schedule-request.js';
import { readSchedule, type SeenSchedule } from './seen-schedule.js';

/** Schedules that are asked about at once. */
const AT_ONCE = 8;

/** The Temporal Schedules that fill and heal pipelines by the workers of one task queue: two a pipeline, or one where none is healed. */
export class PipelineSchedules {
  readonly #client: Client;
  readonly #taskQueue: string;

  constructor(client: Client, taskQueue: string) {
    this.#client = client;
    this.#taskQueue = taskQueue;
  }

  /**
   * Makes a pipeline's schedules; false where equal ones are there already. A heal that stands alone is what is left of an earlier
   * try, and is made whole. Throws `InvalidInput` where others are, naming the fields, and for what Temporal does not take.
   */
  async add(request: ScheduleRequest): Promise<boolean> {
    const { pipeline } = request;
    const standing = await this.#standing(pipeline);
    const others = othersOwn(standing, this.#taskQueue);
    if (others !== undefined) throw new Failure('InvalidInput', `${pipeline} gets no schedule: ${others}.`);
    if (standing.day) {
      const fields = changesBetween(standingFacts(standing), requestedFacts(request, this.#taskQueue));
      if (fields.length === 0) return false;
      const named = fields.map(({ field, from = 'none', to = 'none' }) => `${field} ${from}, not ${to}`).join('; ');
      throw new Failure(
        'InvalidInput',
        `${pipeline} has a schedule already, with ${named}. Remove it first (\`repave schedule remove ${pipeline}\`), or leave it.`,
      );
    }
    await this.#put(request, standing);
    return true;
  }

  /**
   * What `apply` has to do so that the schedules are as files want them. Changes nothing. `unread`: pipelines of broken files;
   * `ledgers`: ids of the project's own, since what was made for another ledger is not removed.
   */
  async compare(
    wanted: readonly ScheduleRequest[],
    unread: readonly string[],
    ledgers: readonly string[] = [],
  ): Promise<ScheduleComparison> {
    const names = new Set([...wanted.map(({ pipeline }) => pipeline), ...(await this.#listed())]);
    return compareSchedules(wanted, await this.#standingOf([...names]), unread, this.#taskQueue, ledgers);
  }

  /**
   * Does one of the changes. A paused schedule stays paused. Done twice, the second time changes nothing. Throws `InvalidInput`
   * where the schedules are no longer ours to touch or somebody else has made them meanwhile, and for what Temporal does not take.
   */
  async apply(change: ScheduleChange): Promise<void> {
    const standing = await this.#standing(change.pipeline);
    const others = othersOwn(standing, this.#taskQueue);
    if (others !== undefined) throw new Failure('InvalidInput', `${change.pipeline} is left as it is: ${others}.`);
    const there = standing.day ?? standing.heal;
    if (change.kind === 'added' && there && this.#differs(standing, change.request))
      throw madeMeanwhile(there.scheduleId);
    switch (change.kind) {
      case 'added':
      case 'changed':
        return this.#put(change.request, standing);
      case 'removed':
        if (there && (keeperOf(standing) !== 'deploy' || ledgerOf(standing) !== change.ledger))
          throw madeMeanwhile(there.scheduleId);
        return this.#removeAll(standing);
      default:
        return change satisfies never;
    }
  }

  /** The schedules of this task queue, by pipeline. */
  async list(): Promise<SeenSchedule[]> {
    const standing = await this.#standingOf(await this.#listed());
    const ours = [...standing].filter(([, schedules]) => othersOwn(schedules, this.#taskQueue) === undefined);
    return inTurn(ours, ([pipeline, schedules]) => readSchedule(this.#client, pipeline, schedules));
  }

  /** Starts no more runs until {@link resume}; those that run go on. Throws `InvalidInput` where the pipeline has none. */
  async pause(pipeline: string, note: string): Promise<void> {
    for (const { scheduleId: id } of await this.#own(pipeline)) await this.#client.schedule.getHandle(id).pause(note);
  }

  /**
   * Starts runs again, from the next time on, which also fills what was finished since the last run before the pause. Throws
   * `InvalidInput` where the pipeline has none.
   */
  async resume(pipeline: string): Promise<void> {
    for (const { scheduleId: id } of await this.#own(pipeline)) await this.#client.schedule.getHandle(id).unpause();
  }

  /** Removes them; what runs goes on. Throws `InvalidInput` where the pipeline has none. */
  async remove(pipeline: string): Promise<void> {
    await this.#own(pipeline);
    await this.#removeAll(await this.#standing(pipeline));
  }

  async #own(pipeline: string): Promise<ScheduleDescription[]> {
    // Behind a pipeline's name it would mean its heal alone.
    if (pipeline.includes('+')) throw new Failure('InvalidInput', `${pipeline} is no pipeline: no name holds a +.`);
    const standing = await this.#standing(pipeline);
    const others = othersOwn(standing, this.#taskQueue);
    if (others !== undefined)
      throw new Failure('InvalidInput', `The schedule of ${pipeline} is left alone: ${others}.`);
    const there = [standing.day, standing.heal].filter((one) => one !== undefined);
    if (there.length === 0) {
      throw new Failure('InvalidInput', `${pipeline} has no schedule. \`repave schedule list\` has those there are.`);
    }
    return there;
  }

  async #put(request: ScheduleRequest, { day, heal }: StandingSchedules): Promise<void> {
    const state = (day ?? heal)?.state;
    const healing = healOptions(request, this.#taskQueue);
    // First, so that a try that was cut off here has not made the schedule yet.
    if (healing) await this.#putOne(healing, heal, state);
    await this.#putOne(dayOptions(request, this.#taskQueue), day, state);
    if (!healing && heal) await this.#removeOne(heal);
  }

  #differs(standing: StandingSchedules, request: ScheduleRequest): boolean {
    return changesBetween(standingFacts(standing), requestedFacts(request, this.#taskQueue)).length > 0;
  }

  /** `state`: of the pipeline's other schedule, for one that is new. */
  async #putOne(
    options: ScheduleOptions,
    standing: ScheduleDescription | undefined,
    state: ScheduleDescription['state'] | undefined,
  ): Promise<void> {
    const { schedule } = this.#client;
    try {
      if (!standing) {
        const paused = state?.paused ? { state: { paused: true, note: state.note } } : {};
        await schedule.create({ ...options, ...paused });
        return;
      }
      await schedule.getHandle(options.scheduleId).update((before) => {
        // As it is at this moment, whatever it was when it was looked at.
        const others = othersOwn({ day: before }, this.#taskQueue);
        if (others !== undefined)
          throw new Failure('InvalidInput', `${options.scheduleId} is left as it is: ${others}.`);
        const { paused, note } = before.state;
        return { ...options, action: withLedger(options.action, before.action.memo), state: { paused, note } };
      });
    } catch (error) {
      if (error instanceof ScheduleAlreadyRunning) throw madeMeanwhile(options.scheduleId);
      throw refusal(error, options.scheduleId) ?? error;
    }
  }

  async #removeAll({ day, heal }: StandingSchedules): Promise<void> {
    for (const one of [heal, day]) if (one) await this.#removeOne(one);
  }

  async #removeOne({ scheduleId: id }: ScheduleDescription): Promise<void> {
    try {
      await this.#client.schedule.getHandle(id).delete();
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
  }

  /** Pipelines that have schedules, as Temporal lists them; a list may lag behind. */
  async #listed(): Promise<string[]> {
    const prefix = scheduleId('');
    const names = new Set<string>();
    for await (const { scheduleId: id } of this.#client.schedule.list()) {
      const [pipeline = ''] = id.startsWith(prefix) ? id.slice(prefix.length).split('+') : [];
      if (pipeline !== '' && (id === scheduleId(pipeline) || id === healScheduleId(pipeline))) names.add(pipeline);
    }
    return [...names].sort();
  }

  async #standingOf(pipelines: readonly string[]): Promise<Map<string, StandingSchedules>> {
    const found = await inTurn(pipelines, async (pipeline) => [pipeline, await this.#standing(pipeline)] as const);
    return new Map(found.filter(([, { day, heal }]) => day ?? heal));
  }

  async #standing(pipeline: string): Promise<StandingSchedules> {
    const [day, heal] = await Promise.all([
      this.#describe(scheduleId(pipeline)),
      this.#describe(healScheduleId(pipeline)),
    ]);
    return { day, heal };
  }

  async #describe(id: string): Promise<ScheduleDescription | undefined> {
    try {
      return await this.#client.schedule.getHandle(id).describe();
    } catch (error) {
      if (error instanceof ScheduleNotFoundError) return undefined;
      throw error;
    }
  }
}

function madeMeanwhile(id: string): Failure {
  return new Failure('InvalidInput', `${id} was made by somebody else just now. Look again.`);
}

/** Who does not know for which ledger a schedule is leaves what it says of that. */
function withLedger(
  action: ScheduleOptions['action'],
  before: ScheduleOptions['action']['memo'],
): ScheduleOptions['action'] {
  const ledger = ledgerIn(before);
  return ledger === undefined ? action : { ...action, memo: { [LEDGER_FIELD]: ledger, ...action.memo } };
}

/** What Temporal says of a schedule that it does not take; undefined for any other error. */
function refusal(error: unknown, id: string): Failure | undefined {
  // The client's own form of a spec that the server refuses.
  if (!(error instanceof TypeError)) return undefined;
  return new Failure('InvalidInput', `Temporal does not take the schedule ${id}: ${error.message}.`);
}

async function inTurn<Item, Result>(items: readonly Item[], look: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let from = 0; from < items.length; from += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(from, from + AT_ONCE).map(look))));
  }
  return results;
}
