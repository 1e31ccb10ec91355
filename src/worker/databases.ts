import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import { openDatabase, type Database } from '../warehouse/database.js';

/** Milliseconds for which a database that failed is not tried again, so that its fills give their slots back at once. */
const REMEMBER_MS = 5_000;

/** The databases of a worker's pipelines: one a URL, opened when first asked for, and made ready once. */
export class Databases {
  readonly #settings: Settings;
  readonly #prepare: (database: Database, url: string) => Promise<void>;
  readonly #open = new Map<string, Promise<Database>>();
  readonly #failed = new Map<string, { readonly until: number; readonly failure: Failure }>();
  readonly #suspected = new Set<string>();

  /** `prepare` runs once for each database, after it was opened and before anything else uses it. */
  constructor(settings: Settings, prepare: (database: Database, url: string) => Promise<void>) {
    this.#settings = settings;
    this.#prepare = prepare;
  }

  /**
   * Hands `use` the pipeline's database. Throws what it throws; `InvalidInput` where the database's variable is not set;
   * `DatabaseUnavailable` where it cannot be reached, and for five seconds after that at once, without asking it.
   */
  async with<Result>(
    pipeline: Pick<Pipeline, 'database'>,
    use: (database: Database) => Promise<Result>,
  ): Promise<Result> {
    const url = databaseUrl(this.#settings, pipeline.database);
    this.#refuseKnownFailure(url);
    const database = await this.#openForUse(url);
    try {
      return await use(database);
    } catch (error) {
      if (error instanceof Failure && error.type === 'DatabaseUnavailable') void this.#probe(url, database);
      throw error;
    }
  }

  /** Opens a database and makes it ready, once. A failure is remembered. */
  async open(url: string): Promise<Database> {
    const opening = this.#open.get(url) ?? this.#opened(url);
    this.#open.set(url, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(url);
      if (error instanceof Failure) this.#remember(url, error);
      throw error;
    }
  }

  /** A ledger that is missing or too old there is somebody's to mend: runs wait for that. */
  async #openForUse(url: string): Promise<Database> {
    try {
      return await this.open(url);
    } catch (error) {
      if (error instanceof Failure && error.final) throw new Failure('DatabaseUnavailable', error.message);
      throw error;
    }
  }

  async close(): Promise<void> {
    const all = await Promise.allSettled(this.#open.values());
    for (const opened of all) if (opened.status === 'fulfilled') await opened.value.close();
  }

  async #opened(url: string): Promise<Database> {
    const { fills, spoolDir } = this.#settings;
    const database = await openDatabase(url, { fills, spoolDir });
    try {
      await this.#prepare(database, url);
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  #refuseKnownFailure(url: string): void {
    const known = this.#failed.get(url);
    if (!known) return;
    if (known.until > Date.now()) {
      const { type, message, options } = known.failure;
      throw new Failure(type, message, { ...options, retryAfterMs: options.retryAfterMs ?? REMEMBER_MS });
    }
    this.#failed.delete(url);
  }

  /** One fill lost its connection: that may be its alone. Only a database that answers nobody is remembered as failed. */
  async #probe(url: string, database: Database): Promise<void> {
    if (this.#suspected.has(url)) return;
    this.#suspected.add(url);
    try {
      await database.query('SELECT 1 AS alive');
    } catch (error) {
      if (error instanceof Failure) this.#remember(url, error);
    } finally {
      this.#suspected.delete(url);
    }
  }

  #remember(url: string, failure: Failure): void {
    this.#failed.set(url, { until: Date.now() + REMEMBER_MS, failure });
  }
}
