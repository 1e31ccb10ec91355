import type { Grid } from '../calendar/calendar.js';
import type { Order } from '../contract.js';
import { keysFrom } from './keys-from.js';
import type { Span } from './selection.js';

/** Some thousands of a plan's partitions: enough that the ledger is asked seldom, few enough to be held. */
export interface KeyPage {
  /** In the asked order. */
  readonly keys: readonly string[];
  /** What the keys are, without holes: to ask the ledger for no others. */
  readonly spans: readonly Span[];
}

/** The keys of disjoint, sorted spans in pages of `size`, in the asked order; the last may be shorter. */
export function* pagesOf(grid: Grid, spans: readonly Span[], order: Order, size: number): Generator<KeyPage> {
  let keys: string[] = [];
  let pieces: Span[] = [];
  for (const { from, to } of order === 'oldest-first' ? spans : spans.toReversed()) {
    for (let after: string | undefined; ;) {
      const run = keysFrom(grid, { from, to, order }, after, size - keys.length);
      const [first, last] = [run[0], run.at(-1)];
      if (first === undefined || last === undefined) break;
      keys.push(...run);
      pieces.push(first < last ? { from: first, to: last } : { from: last, to: first });
      after = last;
      if (keys.length < size) break;
      yield { keys, spans: pieces };
      keys = [];
      pieces = [];
    }
  }
  if (keys.length > 0) yield { keys, spans: pieces };
}
