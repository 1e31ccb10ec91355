import type { Message, ProxiedConnection } from './proxy.js';

/** What stands in a look of the watchdog at a session, and in no other statement. */
export const LOOK = ' AS waits FROM pg_catalog.pg_stat_activity';

/**
 * Tells which messages are of a look of the watchdog at a session: on a slow machine they come between those of a fill, for a
 * test that counts those. To be asked of every message in turn.
 */
export function looksAmong(): (message: Message) => boolean {
  const looking = new Set<ProxiedConnection>();
  return ({ type, sql, connection }) => {
    if (type === 'P' && sql.includes(LOOK)) looking.add(connection);
    const looks = looking.has(connection);
    if (type === 'S') looking.delete(connection);
    return looks;
  };
}
