import { Failure } from '../failure.js';
import type { Database } from './database.js';
import type { Backend } from './session.js';

/** Looks that must agree before a connection is given up: one may fall between two statements. */
const AGREEING_LOOKS = 2;
/**
 * Looks in vain before it is given up: its backend is not known yet, while all that is sent then is answered in
 * milliseconds, or the database does not answer the control pool either.
 */
const BLIND_LOOKS = 4;

/** What the watchdog asks of the session whose statement runs. */
export interface Watched {
  readonly backend: Backend | undefined;
  /** Bytes that its connection has sent and got so far. */
  readonly traffic: number;
  /** Whether it waits for others than its backend, such as a source of rows: then it is no sign of anything that it stands. */
  readonly starves: boolean;
  /** Closes the connection: the statement rejects. */
  destroy(reason: Error): void;
}

/**
 * Watches the backend of a statement that has not answered, from the control pool. A connection whose packets are dropped
 * says nothing to either end: here the backend is gone, or waits for us, while we wait for it and nothing moves. Then the
 * connection is given up, and what its statement did is in doubt.
 */
export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  #idle = 0;
  #blind = 0;
  #looking = false;
  #traffic = 0;

  constructor(
    private readonly database: Database,
    private readonly session: Watched,
  ) {
    this.#timer = setInterval(() => void this.#look(), database.watchEveryMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const { backend, traffic } = this.session;
    if (!backend || this.#looking) {
      this.#sawNothing();
      return;
    }
    this.#looking = true;
    try {
      const [seen] = await this.database.query<{ waits: boolean | null }>(
        // In a COPY that waits for rows, or for us to take some, the state is active. Under another name the transaction has ended, and a pooler may
        // have handed the backend on.
        `SELECT state LIKE 'idle%' OR wait_event IN ('ClientRead', 'ClientWrite') AS waits FROM pg_catalog.pg_stat_activity
          WHERE pid = $1 AND backend_start = $2::pg_catalog.timestamptz AND application_name = $3`,
        [backend.pid, backend.startedAt, backend.applicationName],
      );
      this.#blind = 0;
      const stands = !this.session.starves && traffic === this.#traffic && traffic === this.session.traffic;
      this.#traffic = traffic;
      this.#idle = !seen || (seen.waits && stands) ? this.#idle + 1 : 0;
      if (this.#idle >= AGREEING_LOOKS) this.#end('its backend no longer works on the statement');
    } catch (error) {
      // A server that answers with an error, such as too many connections, says nothing against the backend.
      if (!(error instanceof Failure) || error.options.sqlstate === undefined) this.#sawNothing();
    } finally {
      this.#looking = false;
    }
  }

  #sawNothing(): void {
    this.#blind += 1;
    if (this.#blind >= BLIND_LOOKS) this.#end('neither its statement nor a question about it was answered');
  }

  #end(why: string): void {
    this.stop();
    this.session.destroy(new Error(`The connection was closed, since ${why}`));
  }
}
