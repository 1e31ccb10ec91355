import type { PlannedPipeline } from '../plan/planned-pipeline.js';
import type { PlanEntry } from '../plan/resolve-plan.js';
import type { Database } from '../warehouse/database.js';
import { type InTheWay, inTheWayOf, inTheWayText } from '../warehouse/in-the-way.js';
import type { RegisteredPipeline } from '../warehouse/ledger.js';
import { number } from './format.js';

/** Partitions that the note names. */
const NAMED = 3;

/** Finds, page by page, which of a plan's partitions could not be filled now, since others that they come after are not. */
export class WaitsFor {
  readonly #database: Database;
  readonly #registered: readonly RegisteredPipeline[];
  readonly #pipeline: PlannedPipeline;
  readonly #finishedBy: Date | undefined;
  readonly #first: InTheWay[] = [];
  #waiting = 0;

  /** `registered`: all of the ledger. `finishedBy`: where the plan may have a partition that is not over, for which those that are over are enough. */
  constructor(
    database: Database,
    registered: readonly RegisteredPipeline[],
    pipeline: PlannedPipeline,
    finishedBy: Date | undefined,
  ) {
    this.#database = database;
    this.#registered = registered;
    this.#pipeline = pipeline;
    this.#finishedBy = finishedBy;
  }

  async take(page: readonly PlanEntry[]): Promise<void> {
    const { partition: grid, after = [] } = this.#pipeline;
    // Keys of one granularity sort in the order of time.
    const keys = page.map(({ key }) => key).sort();
    const [from, to] = [keys[0], keys.at(-1)];
    if (after.length === 0 || from === undefined || to === undefined) return;
    const around = { database: this.#database, registered: this.#registered, finishedBy: this.#finishedBy };
    const reasons = await inTheWayOf(around, { grid, after }, { from, to });
    const found = keys.flatMap((key) => reasons.get(key)?.[0] ?? []);
    this.#waiting += found.length;
    this.#first.push(...found.slice(0, NAMED - this.#first.length));
  }

  /** Said to people; undefined where none waits. */
  get note(): string | undefined {
    if (this.#waiting === 0) return undefined;
    const which = this.#waiting === 1 ? '1 partition is' : `${number(this.#waiting)} partitions are`;
    return `${which} not ready: what comes first is not filled, such as ${inTheWayText(this.#first)}.`;
  }
}
