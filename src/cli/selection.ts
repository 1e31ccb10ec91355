import { type Command, Option } from 'commander';
import { ORDERS, SELECTABLE_STATES } from '../contract.js';
import type { Wording } from '../pipeline/input-failure.js';
import { askedKeys, list, wholeNumber } from './keys.js';
import { typedWording } from './typed.js';

/** Flags that say which partitions; they mirror the contract's fields. */
export interface SelectionOptions {
  readonly from?: string;
  readonly to?: string;
  readonly last?: number;
  readonly lookback?: number;
  readonly tries?: number;
  readonly only?: readonly string[];
  readonly order?: string;
  readonly includeUnfinished?: boolean;
  readonly downstream?: boolean;
}

/** Adds the flags that say which partitions. What they hold is judged by the one judge of requests. */
export function withSelection(command: Command): Command {
  return command
    .option('--from <key>', 'first partition, included')
    .option('--to <key>', 'last partition, included (default: the newest finished one)')
    .option('--last <n>', 'the n newest finished partitions', wholeNumber)
    .option(
      '--lookback <n>',
      "with --last: and the n before them, for rows that come late (default: the pipeline's)",
      wholeNumber,
    )
    .option('--only <states>', `only partitions that are ${SELECTABLE_STATES.join(', ')}; comma-separated`, list)
    .option('--tries <n>', 'with --only failed: leave out what has failed n times in the same way', wholeNumber)
    .addOption(new Option('--order <order>', `${ORDERS.join(' or ')}`))
    .option('--include-unfinished', 'take in the current, unfinished partition')
    .option('--downstream', 'then what depends on these too, by `after`: the partitions that overlap them');
}

/** The request's fields that the flags and plain keys give; absent ones are left out. */
export function selection(plain: readonly string[], options: SelectionOptions): Record<string, unknown> {
  const { from, to, last, lookback, only, tries, order, includeUnfinished, downstream } = options;
  const asked = askedKeys(plain, { from, to, last });
  const fields = { ...asked, lookback, only, tries, order, includeUnfinished, downstream };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** How the fields of {@link selection} were typed. */
export function selectionWording(plain: readonly string[], options: SelectionOptions): Wording {
  const { from, to, last } = options;
  const range = plain.length === 1 && plain[0]?.includes('..');
  const byArgument = askedKeys(plain, { from, to, last }).keys === undefined && plain.length === 1;
  return typedWording((path) => {
    if (path === 'pipeline') return 'the pipeline';
    if (path === 'keys') return 'keys as arguments';
    const [, index] = /^keys\[(\d+)\]$/.exec(path) ?? [];
    if (index !== undefined) return plain.length === 1 ? 'the key' : `key ${Number(index) + 1}`;
    if (!byArgument || (path !== 'from' && path !== 'to')) return undefined;
    return range ? `the ${path === 'from' ? 'first' : 'last'} key` : 'the key';
  });
}
