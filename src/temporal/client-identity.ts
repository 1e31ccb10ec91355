import { hostname, userInfo } from 'node:os';

/**
 * Who a client is to Temporal and, as who started a run, to the ledger: `ana@laptop (repave)`, the system's user and the
 * machine. Nothing of the environment.
 */
export function clientIdentity(): string {
  return `${user()}@${hostname()} (repave)`;
}

/** A user without a name of its own, as in a container, is its number. */
function user(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
