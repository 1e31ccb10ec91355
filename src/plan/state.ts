import type { PartitionState } from '../contract.js';
import type { PartitionRow } from '../warehouse/partitions.js';

/**
 * A partition's state, from its row in the ledger (undefined where it has none) and its pipeline's fingerprint. Exactly one,
 * the first that fits: `failed`, `missing`, `outdated`, `filled`.
 */
export function stateOf(
  row: Pick<PartitionRow, 'outcome' | 'filledAt' | 'fingerprint'> | undefined,
  fingerprint: string,
): PartitionState {
  if (!row) return 'missing';
  if (row.outcome === 'failed') return 'failed';
  if (row.filledAt === null) return 'missing';
  return row.fingerprint === fingerprint ? 'filled' : 'outdated';
}
