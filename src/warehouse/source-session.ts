import { Failure } from '../failure.js';
import type { Database } from './database.js';
import type { SqlPipeline } from '../pipeline/pipeline.js';
import type { FillRequest } from './fill-request.js';
import type { Session } from './session.js';
import { toSourceFailure } from './source-failure.js';
import { begin } from './transaction.js';

/** Milliseconds that the query waits for a lock on one of its tables, such as an ALTER TABLE's. */
const SOURCE_LOCK_WAIT_MS = 30_000;

/** A fill's session on the database that its pipeline reads from. */
export interface SourceSession {
  readonly database: Database;
  /** In a transaction that only reads, all in one snapshot. */
  readonly session: Session;
  /** Ends it: no query of it runs on the source once this resolves. Never throws. */
  end(): Promise<void>;
}

/**
 * Begins to read from a pipeline's source, with what the target's session has pinned. Once the request's signal is aborted its
 * backend is ended. Throws `DatabaseUnavailable` where the source cannot be reached.
 */
export async function openSource(
  request: FillRequest,
  pipeline: SqlPipeline,
  applicationName: string,
): Promise<SourceSession> {
  const { source: database, signal } = request;
  if (!database) {
    throw new Failure(
      'Unexpected',
      `${pipeline.name} reads from another database, by its \`source\`, and none was opened for it. This is a defect of Repave: please report it.`,
    );
  }
  const session = await database.session(signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw toSourceFailure(error, database, pipeline.name);
  });
  let cancelling: Promise<void> | undefined;
  const onAbort = (): void => {
    cancelling = session.cancel();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  const end = async (): Promise<void> => {
    signal.removeEventListener('abort', onAbort);
    await cancelling;
    await session.rollback();
    session.release();
  };
  try {
    signal.throwIfAborted();
    await begin(session, database, {
      applicationName,
      zone: pipeline.partition.zone,
      lockTimeoutMs: SOURCE_LOCK_WAIT_MS,
      statementTimeoutMs: request.timeLeftMs,
      // It waits for the target's DELETE.
      idleTimeoutMs: request.timeLeftMs,
      readOnly: true,
    });
    return { database, session, end };
  } catch (error) {
    await end();
    throw toSourceFailure(error, database, pipeline.name);
  }
}
