import type { FillPolicy } from '../activities/messages.js';

/** Whether a child's second argument is what a backfill hands down. */
export function isPolicy(value: unknown): value is FillPolicy {
  if (typeof value !== 'object' || value === null) return false;
  const policy = value as Partial<FillPolicy>;
  return (
    typeof policy.ledger === 'string' &&
    typeof policy.fingerprint === 'string' &&
    typeof policy.timeoutMs === 'number' &&
    typeof policy.giveUpAfterMs === 'number'
  );
}
