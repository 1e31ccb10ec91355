import type { Database } from './database.js';
import type { Session } from './session.js';
import { begin } from './transaction.js';
import { withSession } from './with-session.js';

/**
 * Hands `look` a session in a read-only transaction, pinned as a fill's in the pipeline's zone, in which a server judges
 * statements. It is rolled back in every case. Rejects as `look` does.
 */
export async function lookOnly<T>(
  database: Database,
  applicationName: string,
  zone: string,
  look: (session: Session) => Promise<T>,
): Promise<T> {
  return withSession(database, new AbortController().signal, async (session) => {
    try {
      await begin(session, database, {
        applicationName,
        zone,
        lockTimeoutMs: 5_000,
        statementTimeoutMs: 30_000,
        readOnly: true,
      });
      return await look(session);
    } finally {
      await session.rollback();
    }
  });
}
