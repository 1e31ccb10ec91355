import type { Database } from './database.js';
import type { Session } from './session.js';

/**
 * Hands a connection to `work`. Once the signal is aborted its statement is ended on the server; in every case but success the
 * transaction is rolled back, and the connection given back or closed, before this settles.
 */
export async function withSession<T>(
  database: Database,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const session = await database.session();
  let cancelling: Promise<void> | undefined;
  const onAbort = (): void => {
    cancelling = session.cancel();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    signal.throwIfAborted();
    return await work(session);
  } catch (error) {
    await session.rollback();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    await cancelling;
    session.release();
  }
}
