import type { CarriedBackfill } from '../activities/messages.js';
import { MAX_LISTED_FAILURES, type BackfillResult, type PartitionFailure, type Progress } from '../contract.js';

/** How a partition's child ended, as far as its backfill is concerned. */
export type ChildOutcome =
  | { readonly kind: 'filled'; readonly rows: number }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'failed'; readonly type: string; readonly message: string }
  /** Ended after the backfill's own cancel: counts for nothing. */
  | { readonly kind: 'cancelled' };

/** Characters of a failure's message that a backfill keeps; the ledger has all of it. */
const MESSAGE_LENGTH = 300;

/** What a backfill has done, over all of its runs. */
export class Tally {
  filled = 0;
  failed = 0;
  skipped = 0;
  rows = 0;
  readonly failures: PartitionFailure[] = [];
  readonly running = new Set<string>();
  phase: Progress['phase'] = 'planning';

  constructor(carried?: CarriedBackfill) {
    if (!carried) return;
    this.filled = carried.filled;
    this.failed = carried.failed;
    this.skipped = carried.skipped;
    this.rows = carried.rows;
    this.failures.push(...carried.failures);
  }

  add(key: string, outcome: ChildOutcome): void {
    switch (outcome.kind) {
      case 'filled':
        this.filled += 1;
        this.rows += outcome.rows;
        return;
      case 'skipped':
        this.skipped += 1;
        return;
      case 'failed':
        this.failed += 1;
        if (this.failures.length < MAX_LISTED_FAILURES) {
          this.failures.push({ key, type: outcome.type, message: shortened(outcome.message) });
        }
        return;
      case 'cancelled':
        return;
      default:
        outcome satisfies never;
    }
  }

  counts(): Pick<BackfillResult, 'filled' | 'failed' | 'skipped' | 'rows'> {
    return { filled: this.filled, failed: this.failed, skipped: this.skipped, rows: this.rows };
  }
}

function shortened(message: string): string {
  return message.length <= MESSAGE_LENGTH ? message : `${message.slice(0, MESSAGE_LENGTH - 1)}…`;
}
