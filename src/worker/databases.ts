import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import { openDatabase, type Database } from '../warehouse/database.js';

/** Milliseconds after a failure until the database is asked again. */
const REST_MS = 5_000;
/** Milliseconds after which a refused fill comes again: one database's troubles are to cost no other's fill its slot. */
const COME_AGAIN_MS = 2_000;

/** A database that has not answered. Until it answers a question of the worker's own, whoever wants it is refused at once. */
interface Trouble {
  failure: Failure;
  asking: boolean;
  restsUntil: number;
}

/** The databases of a worker's pipelines: one a URL, opened when first asked for, and made ready once. */
export class Databases {
  readonly #settings: Settings;
  readonly #prepare: (database: Database, url: string) => Promise<void>;
  readonly #readOnly: boolean;
  readonly #open = new Map<string, Promise<Database>>();
  readonly #troubles = new Map<string, Trouble>();

  /**
   * `prepare` runs once for each database, after it was opened and before anything else uses it. `readOnly`: they are what
   * pipelines read from, and no more.
   */
  constructor(
    settings: Settings,
    prepare: (database: Database, url: string) => Promise<void>,
    { readOnly = false } = {},
  ) {
    this.#settings = settings;
    this.#prepare = prepare;
    this.#readOnly = readOnly;
  }

  /**
   * Hands `use` the pipeline's database. Throws what it throws; `InvalidInput` where the database's variable is not set;
   * `DatabaseUnavailable` where it cannot be reached, and from then on at once until it answers again.
   */
  async with<Result>(
    pipeline: Pick<Pipeline, 'database'>,
    use: (database: Database) => Promise<Result>,
  ): Promise<Result> {
    const url = databaseUrl(this.#settings, pipeline.database);
    this.#refuseInTrouble(url);
    let database: Database | undefined;
    try {
      database = await this.#openForUse(url);
      return await use(database);
    } catch (error) {
      if (error instanceof Failure && error.type === 'DatabaseUnavailable' && isAbout(database, error)) {
        this.#suspect(url, error);
      }
      throw error;
    }
  }

  /** Opens a database and makes it ready, once; tries again what has failed before. */
  async open(url: string): Promise<Database> {
    const opening = this.#open.get(url) ?? this.#opened(url);
    this.#open.set(url, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(url);
      throw error;
    }
  }

  async close(): Promise<void> {
    const all = await Promise.allSettled(this.#open.values());
    for (const opened of all) if (opened.status === 'fulfilled') await opened.value.close();
  }

  /** A ledger that is missing or too old there is somebody's to mend: runs wait for that. */
  async #openForUse(url: string): Promise<Database> {
    try {
      return await this.open(url);
    } catch (error) {
      if (error instanceof Failure && error.final)
        throw new Failure('DatabaseUnavailable', error.message, error.options);
      throw error;
    }
  }

  async #opened(url: string): Promise<Database> {
    const { fills, spoolDir } = this.#settings;
    const database = await openDatabase(url, { fills, spoolDir, readOnly: this.#readOnly });
    try {
      await this.#prepare(database, url);
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  #refuseInTrouble(url: string): void {
    const trouble = this.#troubles.get(url);
    if (!trouble) return;
    if (!trouble.asking && trouble.restsUntil <= Date.now()) void this.#ask(url, trouble);
    const { type, message, options } = trouble.failure;
    throw new Failure(type, message, { retryAfterMs: COME_AGAIN_MS, place: options.place });
  }

  /** One fill lost its connection, which may be its alone: the database itself is asked, and only then. */
  #suspect(url: string, failure: Failure): void {
    if (this.#troubles.has(url)) return;
    const trouble = { failure, asking: false, restsUntil: 0 };
    this.#troubles.set(url, trouble);
    void this.#ask(url, trouble);
  }

  async #ask(url: string, trouble: Trouble): Promise<void> {
    trouble.asking = true;
    try {
      const database = await this.open(url);
      await database.query('SELECT 1 AS answer');
      this.#troubles.delete(url);
    } catch (error) {
      if (error instanceof Failure) trouble.failure = new Failure('DatabaseUnavailable', error.message, error.options);
      trouble.restsUntil = Date.now() + REST_MS;
    } finally {
      trouble.asking = false;
    }
  }
}

/** A fill may lose either of its databases: the other is above suspicion where its failure names the place. */
function isAbout(database: Database | undefined, { options: { place } }: Failure): boolean {
  return database === undefined || place === undefined || place === database.place;
}
