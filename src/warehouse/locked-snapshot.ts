import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { sqlstate } from './errors.js';
import type { Session } from './session.js';
import { readTarget, type Target } from './target.js';
import { begin, commit, type Pins } from './transaction.js';

/** How often the table may be taken again just as it was waited for. */
const TRIES = 10;

/**
 * Begins a read-only transaction in which one snapshot holds for all statements, and which is no older than the lock that it has
 * on the pipeline's target. A snapshot that is, sees the table empty once an ALTER TABLE that rewrites it, or a TRUNCATE, has
 * committed while its lock was waited for: https://www.postgresql.org/docs/current/mvcc-caveats.html
 *
 * Waits for the table `pins.lockTimeoutMs`, in a transaction of its own, whose backend is known meanwhile. Throws what
 * {@link readTarget} throws, and the server's error where the table was not free in time.
 */
export async function beginLocked(
  session: Session,
  database: Database,
  pipeline: Pipeline,
  pins: Omit<Pins, 'readOnly' | 'locked'>,
): Promise<Target> {
  for (let tries = 1; ; tries++) {
    const locked = await waitForTable(session, database, pipeline, pins);
    try {
      await begin(session, database, { ...pins, readOnly: true, locked });
      break;
    } catch (error) {
      // Somebody has taken it in between.
      if (sqlstate(error) !== '55P03' || tries === TRIES) throw error;
      await session.rollback();
    }
  }
  return readTarget(session, pipeline);
}

/** Resolves to the table's name with its schema, quoted, once nobody holds it against readers. */
async function waitForTable(session: Session, database: Database, pipeline: Pipeline, pins: Pins): Promise<string> {
  await begin(session, database, pins);
  const { oid } = await readTarget(session, pipeline);
  const [table] = await session.rows<{ name: string }>(
    `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name
       FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1`,
    [oid],
  );
  if (!table) throw new Error('A table that was just read has no name');
  await session.query(`LOCK TABLE ${table.name} IN ACCESS SHARE MODE`);
  await commit(session);
  return table.name;
}
