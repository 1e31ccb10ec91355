import { createHash } from 'node:crypto';
import { SELECTABLE_STATES, type BackfillInput } from '../contract.js';

/**
 * The workflow id under which command and client start a backfill: what is asked for, so that the same asked twice meets
 * itself. `backfill/<pipeline>/<from>..<to>`, `…/last-<n>`, `…/keys-<hash>` or `…/all`, with `+missing+failed` for `only`.
 */
export function backfillWorkflowId(input: BackfillInput): string {
  const states = SELECTABLE_STATES.filter((state) => input.only?.includes(state)).map((state) => `+${state}`);
  return `backfill/${input.pipeline}/${partitions(input)}${states.join('')}${input.dryRun ? '+dry-run' : ''}`;
}

/** What a backfill covers, in few characters. */
export function partitions({ from, to, keys, last }: BackfillInput): string {
  if (keys) return `keys-${keysDigest(keys)}`;
  if (last !== undefined) return `last-${last}`;
  if (from !== undefined) return `${from}..${to ?? ''}`;
  return 'all';
}

/** A set of keys in 16 characters, whatever their order. */
export function keysDigest(keys: readonly string[]): string {
  const set = [...new Set(keys)].sort();
  return createHash('sha256').update(set.join('\n')).digest('hex').slice(0, 16);
}
