import { DEFAULTS, type BackfillInput, type PartitionInput } from '../contract.js';
import { keysDigest } from './backfill-id.js';

/** A run's input as its memo keeps it: every field that is not as by default, small enough to be listed with the run. */
export type InputMemo = Readonly<Record<string, unknown>>;

const MAX_KEPT_KEYS = 20;

/** Two inputs that ask for the same have the same memo, whatever they leave to defaults. */
export function backfillMemo(input: BackfillInput): InputMemo {
  const { keys, only } = input;
  return withoutDefaults({
    ...input,
    keys:
      keys && (keys.length <= MAX_KEPT_KEYS ? [...new Set(keys)].sort() : `${keys.length} keys, ${keysDigest(keys)}`),
    only: only && [...new Set(only)].sort(),
  });
}

export function partitionMemo(input: PartitionInput): InputMemo {
  return withoutDefaults({ ...input });
}

/** The memo of what is perhaps a backfill's input, from a run that anybody may have started; undefined where it is none. */
export function memoOfBackfill(input: unknown): InputMemo | undefined {
  if (!isObject(input)) return undefined;
  const lists = [input.keys, input.only].filter((list) => list !== undefined);
  const judged = lists.every((list) => Array.isArray(list) && list.every((entry) => typeof entry === 'string'));
  return judged ? backfillMemo(input as object as BackfillInput) : undefined;
}

/** The same of a partition's. */
export function memoOfPartition(input: unknown): InputMemo | undefined {
  return isObject(input) ? partitionMemo(input as object as PartitionInput) : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields in which two memos differ, by name. */
export function differences(one: InputMemo, other: InputMemo): string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name])).sort();
}

function withoutDefaults(fields: Record<string, unknown>): InputMemo {
  const defaults: Record<string, unknown> = {
    order: 'oldest-first',
    priority: DEFAULTS.priority,
    onBusy: 'wait',
    onFailure: 'continue',
    maxFailures: DEFAULTS.maxFailures,
    includeUnfinished: false,
    dryRun: false,
  };
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => value !== undefined && value !== defaults[name]),
  );
}
