import { Failure } from '../failure.js';
import type { Database } from './database.js';
import { sqlstate } from './errors.js';
import { SEEN_SESSION, type SeenSession, sessionInWords } from './seen-session.js';
import type { Target } from './target.js';

/**
 * Says of an error that a fill's own statement met, where that was a lock on the target not got in time, who is in the way:
 * pid, role, application_name and since when. Any other error comes back as it is.
 */
export async function nameBlocker(error: unknown, database: Database, target: Target): Promise<unknown> {
  const code = error instanceof Failure ? error.options.sqlstate : sqlstate(error);
  if (code !== '55P03') return error;
  const [blocker] = await database.query<SeenSession & { mode: string; granted: boolean }>(
    // The modes that a DELETE and an INSERT have to wait for. One that waits itself stands before them in the queue.
    `SELECT ${SEEN_SESSION}, l.mode, l.granted
       FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
      WHERE l.locktype = 'relation' AND l.relation = ANY ($1::pg_catalog.oid[])
        AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
        AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
      ORDER BY l.granted DESC, a.xact_start LIMIT 1`,
    [target.tree],
  );
  if (!blocker) return error;
  const who = sessionInWords(blocker);
  return new Failure(
    'Conflict',
    `${who.charAt(0).toUpperCase()}${who.slice(1)}, ${blocker.granted ? 'holds' : 'waits for'} a ${blocker.mode} on ${target.name}, as ALTER TABLE, CREATE INDEX and the like do, and the fill waits behind it. It is tried again.`,
    { sqlstate: code, retryAfterMs: 5_000 },
  );
}
