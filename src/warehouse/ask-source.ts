import type { SqlPipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { sqlstate, toFailure } from './errors.js';
import type { Session } from './session.js';
import { toSourceFailure } from './source-failure.js';
import { begin, commit } from './transaction.js';
import { type AskingSetting, refusedSetting } from './setting-failure.js';
import { withSession } from './with-session.js';

/** Milliseconds that the query waits for a lock. */
const LOCK_WAIT_MS = 30_000;

/** Who asks something of a pipeline's source. */
export interface Asking {
  /** The target's database. */
  readonly database: Database;
  /** Where the pipeline's query runs, where that is another. */
  readonly source?: Database;
  /** By which others find its backend. */
  readonly applicationName: string;
  /** Milliseconds that a statement may take. */
  readonly timeLeftMs: number;
  /** Aborted to end it: its query is ended on the server before `askSource` rejects. */
  readonly signal: AbortSignal;
}

/**
 * Hands `ask` a session where a pipeline's own query runs, in a transaction that only reads, pinned as a fill's; the target has
 * no lock and no transaction of ours meanwhile. Each statement has a snapshot of its own, which is taken once it has waited for
 * its tables: one for all would show none of the rows that a TRUNCATE and a reload have put there meanwhile. Throws what the server says of the query of the setting
 * `name`, as a `Failure`; the signal's reason once that is aborted.
 */
export async function askSource<T>(
  { database, source, applicationName, timeLeftMs, signal }: Asking,
  { name: pipeline, partition }: SqlPipeline,
  name: AskingSetting,
  ask: (session: Session) => Promise<T>,
): Promise<T> {
  const where = source ?? database;
  try {
    return await withSession(where, signal, async (session) => {
      await begin(session, where, {
        applicationName,
        zone: partition.zone,
        lockTimeoutMs: LOCK_WAIT_MS,
        statementTimeoutMs: timeLeftMs,
        readOnly: 'each statement',
      });
      const answer = await ask(session);
      await commit(session);
      return answer;
    });
  } catch (error) {
    signal.throwIfAborted();
    if (source) throw toSourceFailure(error, source, pipeline);
    if (sqlstate(error) === '25006') throw refusedSetting(pipeline, name, 'writes: its transaction is read-only');
    throw toFailure(error);
  }
}
