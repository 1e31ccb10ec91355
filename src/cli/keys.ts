import { InvalidArgumentError } from 'commander';

/** The part of a request that says which partitions, as the flags and plain arguments give it. */
export interface Asked {
  readonly from?: string;
  readonly to?: string;
  readonly keys?: readonly string[];
  readonly last?: number;
}

/**
 * Reads keys that stand as plain arguments beside `--from`, `--to` and `--last`. One key or one range becomes `from` and
 * `to`, which give the workflow a name that people read; several become `keys`. What contradicts is left for the one judge
 * of requests to refuse.
 */
export function askedKeys(plain: readonly string[], flags: { from?: string; to?: string; last?: number }): Asked {
  const given = { ...flags };
  const [only, ...more] = plain;
  if (only === undefined) return given;
  if (more.length > 0) return { ...given, keys: plain };
  if (given.from !== undefined || given.to !== undefined || given.last !== undefined) return { ...given, keys: plain };
  const dots = only.indexOf('..');
  if (dots < 0) return { from: only, to: only };
  const from = only.slice(0, dots);
  const to = only.slice(dots + 2);
  if (from === '') return { keys: plain };
  return to === '' ? { from } : { from, to };
}

/** A whole number as a flag gives it. Throws commander's own error, which names the flag. */
export function wholeNumber(text: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}

/** `--only missing,failed` and `--only missing --only failed` alike. */
export function list(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(',').map((part) => part.trim())].filter((part) => part !== '');
}
