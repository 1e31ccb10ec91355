import type { PartitionState } from '../contract.js';
import type { StateRow } from './partition-states.js';

/**
 * A partition's state, from its row in the ledger (undefined where it has none) and its pipeline's fingerprint. Exactly one,
 * the first that fits: `failed`, `missing`, `outdated` (filled by another fingerprint, or before what it comes after was filled
 * again), `changed` (where its source was asked), `filled`.
 */
export function stateOf(
  row: Pick<StateRow, 'outcome' | 'filledAt' | 'fingerprint' | 'upstreamMoved'> | undefined,
  fingerprint: string,
  sourceMoved = false,
): PartitionState {
  if (!row) return 'missing';
  if (row.outcome === 'failed') return 'failed';
  if (row.filledAt === null) return 'missing';
  if (row.fingerprint !== fingerprint || row.upstreamMoved) return 'outdated';
  return sourceMoved ? 'changed' : 'filled';
}
