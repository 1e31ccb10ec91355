import { durationMs } from '../pipeline/duration.js';
import type { Database } from '../warehouse/database.js';
import { ledgerSizes, type TableSize } from '../warehouse/ledger-size.js';
import { type Finding, fine, unsure } from './finding.js';
import { bytes, number } from './format.js';
import { DEFAULT_KEEP } from './prune.js';

/** Rows that `repave prune` would remove, from which on it is worth while. */
const MANY_PRUNABLE = 1_000_000;
/** Fills that the ledger keeps of each partition, on average; below so many fills in all that is nothing to mend. */
const MANY_PER_PARTITION = 10;
const MANY_FILLS = 100_000;

/** Says how large the ledger has become, and when it is time to prune it. */
export async function examineLedgerSize(database: Database): Promise<Finding[]> {
  const sizes = await ledgerSizes(database, durationMs(DEFAULT_KEEP) ?? 0);
  return sizeFindings(sizes);
}

/** What the sizes of the ledger's tables come to. */
export function sizeFindings(sizes: readonly TableSize[]): Finding[] {
  const about = sizes.some(({ sampled }) => sampled) ? 'about ' : '';
  const rowsOf = (name: string): number => sizes.find(({ table }) => table === name)?.rows ?? 0;
  const [fills, partitions] = [rowsOf('fill'), rowsOf('partition')];
  const prunable = sizes.reduce((sum, table) => sum + table.prunable, 0);
  const all = bytes(sizes.reduce((sum, table) => sum + table.bytes, 0));
  const rows = sizes.map(({ table, rows }) => `${table} ${number(rows)}`).join(', ');
  const removes = `\`repave prune\` would remove ${about}${number(prunable)} that are needed no more`;
  const findings = [fine(`the ledger's rows: ${about}${rows}; ${all} with indexes; ${removes}`)];
  if (prunable > MANY_PRUNABLE) {
    findings.push(
      unsure(
        `the ledger has ${about}${number(prunable)} rows that are old and over`,
        'Run `repave prune`, and have it run each day or week. Fills may go on meanwhile.',
      ),
    );
  } else if (fills >= MANY_FILLS && fills > MANY_PER_PARTITION * partitions) {
    findings.push(
      unsure(
        `the ledger keeps ${about}${number(Math.round(fills / Math.max(1, partitions)))} fills of each partition`,
        'Run `repave prune` with a shorter --keep, such as 30d: `repave prune --keep 30d --dry-run` says what would go.',
      ),
    );
  }
  return findings;
}
