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

/**
 * Watches the backend of a statement that has not answered, from the control pool. A connection whose packets are dropped
 * says nothing to either end: here the backend is gone, or idle, while we still wait. Then the connection is given up,
 * and what its statement did is in doubt.
 */
export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  #idle = 0;
  #blind = 0;
  #looking = false;

  constructor(
    private readonly database: Database,
    private readonly backend: () => Backend | undefined,
    private readonly giveUp: (reason: Error) => void,
  ) {
    this.#timer = setInterval(() => void this.#look(), database.watchEveryMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const backend = this.backend();
    if (!backend || this.#looking) {
      this.#sawNothing();
      return;
    }
    this.#looking = true;
    try {
      const [seen] = await this.database.query<{ waits: boolean | null }>(
        // While a COPY runs the state is active. Under another name the transaction has ended, and a pooler may have handed
        // the backend on.
        `SELECT state LIKE 'idle%' AS waits FROM pg_catalog.pg_stat_activity
          WHERE pid = $1 AND backend_start = $2::pg_catalog.timestamptz AND application_name = $3`,
        [backend.pid, backend.startedAt, backend.applicationName],
      );
      this.#blind = 0;
      this.#idle = !seen || seen.waits ? this.#idle + 1 : 0;
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
    this.giveUp(new Error(`The connection was closed, since ${why}`));
  }
}
