import pg from 'pg';
import type { TestDatabase } from './database.js';

/** What a session of a run does or holds, as a superuser sees it: from other roles it is hidden. */
export interface AtWork {
  readonly pid: number;
  readonly state: string;
  readonly query: string;
  /** Such as `advisory`, `relation`: not its own transaction's number, which every transaction holds. */
  readonly locks: readonly string[];
}

/** The sessions of a run that run something or hold a lock, whichever worker opened them. */
export async function atWork(superuser: pg.Pool, run: string): Promise<AtWork[]> {
  const { rows } = await superuser.query<AtWork>(
    `SELECT pid, state, query, locks FROM pg_stat_activity a,
            LATERAL (SELECT array_agg(locktype) FILTER (WHERE locktype <> 'virtualxid') AS locks FROM pg_locks WHERE pid = a.pid) l
      WHERE datname = current_database() AND application_name LIKE 'repave ' || $1 || '/%'
        AND (state NOT LIKE 'idle%' OR locks IS NOT NULL)`,
    [run],
  );
  return rows;
}

/** Connections as superuser, by which a test looks at sessions and ends them. The test ends them. */
export function superuserPool(test: TestDatabase): pg.Pool {
  const pool = new pg.Pool({ connectionString: test.superuserUrl, max: 4 });
  // The end of the database ends what is still closing.
  pool.on('error', () => undefined);
  return pool;
}
