import type { Database } from './database.js';
import type { Backend } from './session.js';

/** Looks that must agree before a connection is given up: one may fall between two statements. */
const AGREEING_LOOKS = 2;

/**
 * Watches the backend of a statement that has not answered, from the control pool. A connection whose packets are dropped
 * says nothing to either end: here the backend is gone, or idle, while we still wait. Then the connection is given up,
 * and what its statement did is in doubt.
 */
export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  #suspicions = 0;
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
    if (!backend || this.#looking) return;
    this.#looking = true;
    try {
      const [seen] = await this.database.query<{ waits: boolean }>(
        // While a COPY runs the state is active, and the wait event says who waits for whom.
        `SELECT state LIKE 'idle%' AS waits FROM pg_catalog.pg_stat_activity
          WHERE pid = $1 AND backend_start = $2::pg_catalog.timestamptz`,
        [backend.pid, backend.startedAt],
      );
      this.#suspicions = !seen || seen.waits ? this.#suspicions + 1 : 0;
    } catch {
      this.#suspicions += 1;
    } finally {
      this.#looking = false;
    }
    if (this.#suspicions >= AGREEING_LOOKS) {
      this.stop();
      this.giveUp(new Error('The connection was closed, since its backend no longer works on the statement'));
    }
  }
}
