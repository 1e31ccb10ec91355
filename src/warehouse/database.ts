import pg from 'pg';
import { Failure } from '../failure.js';
import { abortable } from './abortable.js';
import { toFailure } from './errors.js';
import { beginAlone, ROLE_DEFAULTS, type RoleDefaults } from './role-defaults.js';
import { Session } from './session.js';

export interface DatabaseOptions {
  /** Fills at once. One fill holds at most one connection. */
  readonly fills: number;
  /** Where rows of TypeScript pipelines are spooled. Default: the system's temporary folder. */
  readonly spoolDir?: string;
  /** Milliseconds between two looks at the backend of a statement that has not answered. Default 5,000. */
  readonly watchEveryMs?: number;
  /** Milliseconds in which the database must answer whoever cancels. Default 3,000. */
  readonly answerMs?: number;
  /** True for what a pipeline reads from: nothing is ever written there, so that it may be a standby. */
  readonly readOnly?: boolean;
}

/** Milliseconds to wait for a connection: a server that accepts and says nothing must not hold a fill. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Milliseconds a control statement may take; they read a few rows of the catalog or the ledger. */
const CONTROL_TIMEOUT_MS = 20_000;
const CONTROL_CONNECTIONS = 3;
/** Beside those of fills, so that a plan which asks its source never waits for one of them to end. */
const ASKING_CONNECTIONS = 1;

/**
 * One PostgreSQL database, held by two pools: fills, one connection each, and a small control pool that cancels, watches and
 * ends them, so that a full pool never stands in the way of a cancel.
 */
export class Database {
  readonly #fills: pg.Pool;
  readonly #control: pg.Pool;
  readonly spoolDir: string | undefined;
  readonly watchEveryMs: number;
  readonly answerMs: number;
  /** Whether sessions may ask the server to look for dead clients; PostgreSQL offers it from version 14, not everywhere. */
  checksClients = false;
  /** The role's and database's own search path, before any session changed it. */
  searchPath = '';
  /** What a single statement of ours needs before it; undefined where it needs nothing. */
  beginAlone: string | undefined;
  serverVersion = 0;
  /** Such as `sales at db.example:5432`: never the user or the password. */
  readonly place: string;
  readonly readOnly: boolean;

  constructor(url: string, options: DatabaseOptions) {
    const common = connectionConfig(url);
    const { hostname, port, pathname } = new URL(url);
    this.place = `${pathname.slice(1) || '(default)'} at ${hostname || 'localhost'}:${port || '5432'}`;
    this.#fills = new pg.Pool({ ...common, max: options.fills + ASKING_CONNECTIONS, application_name: 'repave' });
    this.#control = new pg.Pool({
      ...common,
      max: CONTROL_CONNECTIONS,
      query_timeout: CONTROL_TIMEOUT_MS,
      application_name: 'repave control',
    });
    this.readOnly = options.readOnly ?? false;
    this.spoolDir = options.spoolDir;
    this.watchEveryMs = options.watchEveryMs ?? 5_000;
    this.answerMs = options.answerMs ?? 3_000;
    for (const pool of [this.#fills, this.#control]) {
      // An idle connection that the server ends is no failure of anything; without a listener it would end the process.
      pool.on('error', () => undefined);
      // The same for one that it ends in the very tick that hands it out, before a session listens.
      pool.on('connect', (client) => client.on('error', () => undefined));
    }
  }

  /**
   * Runs one statement of Repave's own in autocommit, on the control pool.
   * Throws `Failure` (`DatabaseUnavailable` and the rest of the table in errors.ts).
   */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    try {
      if (this.beginAlone === undefined) return (await this.#control.query<Row>(text, [...values])).rows;
      return await this.#queryPinned<Row>(this.beginAlone, text, values);
    } catch (error) {
      throw this.#placed(error);
    }
  }

  async #queryPinned<Row extends object>(begin: string, text: string, values: readonly unknown[]): Promise<Row[]> {
    const client = await this.#control.connect();
    let lost: Error | undefined;
    const onError = (error: Error): void => {
      lost ??= error;
    };
    client.on('error', onError);
    try {
      await client.query(begin);
      const { rows } = await client.query<Row>(text, [...values]);
      await client.query('COMMIT');
      return rows;
    } catch (error) {
      await client.query('ROLLBACK').catch(onError);
      throw error;
    } finally {
      client.removeListener('error', onError);
      client.release(lost);
    }
  }

  /**
   * A connection for one fill. Throws `DatabaseUnavailable` where none is to be had in time, and the signal's reason at once
   * where that is aborted meanwhile.
   */
  async session(signal: AbortSignal): Promise<Session> {
    try {
      const connecting = this.#fills.connect();
      return new Session(await abortable(connecting, signal, (late) => late.release()), this);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#placed(error);
    }
  }

  /** Says which database did not answer: a worker may hold several. */
  #placed(error: unknown): Failure {
    const failure = toFailure(error);
    if (failure.type !== 'DatabaseUnavailable') return failure;
    const which = this.readOnly ? `The source ${this.place}` : this.place;
    return new Failure(failure.type, `${which}: ${failure.message}`, { ...failure.options, place: this.place });
  }

  async close(): Promise<void> {
    await Promise.all([this.#fills.end(), this.#control.end()]);
  }
}

/**
 * Opens a database and learns what its server can do. Throws `InvalidInput` for a URL that is none, `DatabaseUnavailable`
 * where the server cannot be reached. The URL is a secret: no message repeats it.
 */
export async function openDatabase(url: string, options: DatabaseOptions): Promise<Database> {
  const database = new Database(url, options);
  try {
    const [facts] = await database.query<RoleDefaults & { version: number; interval: string | null }>(`
      SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4 AS version, ${ROLE_DEFAULTS},
             pg_catalog.current_setting('client_connection_check_interval', true) AS interval`);
    if (!facts) throw new Failure('Unexpected', 'The database answered its own settings with no row.');
    database.serverVersion = facts.version;
    database.searchPath = facts.path;
    database.beginAlone = beginAlone(facts, database.readOnly);
    database.checksClients = facts.interval !== null && (await canCheckClients(database));
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Servers on platforms without POLLRDHUP know the setting and refuse every value but 0. */
async function canCheckClients(database: Database): Promise<boolean> {
  try {
    await database.query(`SELECT pg_catalog.set_config('client_connection_check_interval', '5s', true)`);
    return true;
  } catch (error) {
    if (error instanceof Failure && error.type === 'DatabaseUnavailable') throw error;
    return false;
  }
}

function connectionConfig(url: string): pg.PoolConfig {
  let parsed: URL;
  try {
    parsed = new URL(url);
    decodeURI(parsed.pathname);
  } catch {
    // The URL error holds the whole text, password included.
    throw new Failure(
      'InvalidInput',
      'The database URL cannot be read: expected postgres://user:password@host:port/name.',
    );
  }
  if (parsed.protocol !== 'postgres:' && parsed.protocol !== 'postgresql:') {
    throw new Failure(
      'InvalidInput',
      `The database URL begins with ${parsed.protocol}//: expected postgres:// or postgresql://.`,
    );
  }
  return {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    allowExitOnIdle: true,
  };
}
