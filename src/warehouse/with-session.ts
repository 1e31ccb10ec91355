import type { Database } from './database.js';
import type { Session } from './session.js';

/**
 * Hands a connection to `work`. Once the signal is aborted its backend is ended; in every case but success the transaction
 * is rolled back, and the connection given back or closed, before this settles. Rejects with the signal's reason at once
 * where it is aborted while a connection is still waited for.
 */
export async function withSession<T>(
  database: Database,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await database.session(signal);
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
