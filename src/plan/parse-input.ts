import { z } from 'zod';
import {
  type BackfillInput,
  MAX_CONCURRENCY,
  MAX_KEYS,
  ON_BUSY,
  ON_FAILURE,
  ORDERS,
  type PartitionInput,
  SELECTABLE_STATES,
} from '../contract.js';
import { Failure } from '../failure.js';
import {
  exactObject,
  oneOf,
  shapeProblems,
  shownValue,
  textThat,
  trueOrFalse,
  wholeNumber,
} from '../pipeline/shape.js';
import { isPlanId, PLAN_ID_FORM } from './plan-id.js';

/** Partitions are counted in int4. */
const MAX_LAST = 1_000_000;
const MAX_LOOKBACK = 10_000;
const MAX_TRIES = 1_000;

/** Characters. Longer than any name and any key or range, and short enough to stand in messages, ids and the ledger. */
const MAX_TEXT = 200;

const someText = (expected: string): z.ZodCustom<string, string> =>
  textThat(expected, (text) => text !== '' && text.length <= MAX_TEXT);
const key = someText('a key such as 2024-02-29');
const pipeline = textThat(
  `a pipeline's name such as sales_summary, its path under pipelines/ without extension, of at most ${MAX_TEXT} characters`,
  (text) => text.length <= MAX_TEXT && /^[a-z0-9_]+(\/[a-z0-9_]+)*$/.test(text),
);

const backfillInput = exactObject('field', 'one JSON object', {
  pipeline,
  from: key.optional(),
  to: key.optional(),
  keys: z
    .custom<readonly unknown[]>(
      (value) => Array.isArray(value) && value.length > 0 && value.length <= MAX_KEYS,
      `a list of 1 to ${MAX_KEYS} entries, each a key or a range such as 2024-02-01..2024-02-29`,
    )
    .pipe(z.array(someText('a key or a range such as 2024-02-01..2024-02-29')))
    .optional(),
  last: wholeNumber(1, MAX_LAST).optional(),
  lookback: wholeNumber(0, MAX_LOOKBACK).optional(),
  only: z
    .custom<readonly unknown[]>(
      (value) => Array.isArray(value) && value.length > 0,
      `a list of ${SELECTABLE_STATES.join(', ')}, or leave it out for every partition`,
    )
    .pipe(z.array(oneOf(SELECTABLE_STATES)))
    .optional(),
  plan: textThat(PLAN_ID_FORM, isPlanId).optional(),
  tries: wholeNumber(1, MAX_TRIES).optional(),
  downstream: trueOrFalse().optional(),
  order: oneOf(ORDERS).optional(),
  concurrency: wholeNumber(1, MAX_CONCURRENCY).optional(),
  priority: wholeNumber(1, 5).optional(),
  canary: wholeNumber(1, MAX_LAST).optional(),
  onFailure: oneOf(ON_FAILURE).optional(),
  maxFailures: wholeNumber(1, MAX_LAST).optional(),
  onBusy: oneOf(ON_BUSY).optional(),
  includeUnfinished: trueOrFalse().optional(),
  dryRun: trueOrFalse().optional(),
});

const partitionInput = exactObject('field', 'one JSON object', {
  pipeline,
  key,
  onBusy: oneOf(ON_BUSY).optional(),
  includeUnfinished: trueOrFalse().optional(),
});

const BACKFILL_EXAMPLE = '{"pipeline":"sales_summary","from":"2024-02-01","to":"2024-02-29"}';
const PARTITION_EXAMPLE = '{"pipeline":"sales_summary","key":"2024-02-29"}';

/**
 * Judges the raw input of `backfill`; `extra` are the arguments behind it, of which there must be none. Whether keys fit the
 * pipeline's calendar is for the plan to say. Throws `InvalidInput` naming field, value and what was expected.
 */
export function parseBackfillInput(raw: unknown, extra: readonly unknown[]): BackfillInput {
  const input = parse(backfillInput, raw, extra, BACKFILL_EXAMPLE);
  const { from, to, keys, last, only } = input;
  const ways = [from === undefined && to === undefined ? undefined : 'from/to', keys && 'keys', last && 'last'].filter(
    (way) => way !== undefined,
  );
  if (ways.length > 1) {
    throw invalid(`${ways.join(' and ')} are given: expected one of from/to, keys and last. Leave the others out.`);
  }
  if (to !== undefined && from === undefined) {
    throw invalid(
      `to is ${shownValue(to)} and from is missing: expected both, or from alone for all up to the newest finished.`,
    );
  }
  if (ways.length === 0 && !only) {
    throw invalid(
      'no partitions are named: expected from (and to), keys, last, or only, such as {"only":["missing","failed"]} for all of those.',
    );
  }
  if (input.lookback !== undefined && last === undefined) {
    throw invalid(`lookback is ${input.lookback} and last is left out: expected last with it.`);
  }
  if (input.tries !== undefined && !only?.includes('failed')) {
    throw invalid(`tries is ${input.tries} and only has no failed: expected only with failed in it.`);
  }
  if (input.maxFailures !== undefined && (input.onFailure ?? 'continue') === 'continue') {
    throw invalid(
      `maxFailures is ${input.maxFailures} and onFailure is ${input.onFailure ?? 'left out'}: expected onFailure pause or stop with it.`,
    );
  }
  return input;
}

/** Judges the raw input of `partition`, as {@link parseBackfillInput} does that of `backfill`. */
export function parsePartitionInput(raw: unknown, extra: readonly unknown[]): PartitionInput {
  return parse(partitionInput, raw, extra, PARTITION_EXAMPLE);
}

function parse<T>(schema: z.ZodType<T>, raw: unknown, extra: readonly unknown[], example: string): T {
  const expected = `expected one JSON object such as ${example}`;
  if (extra.length > 0) throw invalid(`${extra.length + 1} arguments are given: ${expected}.`);
  if (raw === undefined || raw === null) throw invalid(`none is given: ${expected}.`);
  if (typeof raw === 'string') throw invalid(`it is ${shownValue(raw)}, a text${quotedObject(raw)}: ${expected}.`);
  if (typeof raw !== 'object' || Array.isArray(raw)) throw invalid(`it is ${shownValue(raw)}: ${expected}.`);
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const problems = shapeProblems(parsed.error, raw).map(({ message }) => message);
  const more = problems.length > 3 ? ` And ${problems.length - 3} more.` : '';
  throw invalid(problems.slice(0, 3).join(' ') + more);
}

function quotedObject(text: string): string {
  try {
    const inner: unknown = JSON.parse(text);
    return typeof inner === 'object' && inner !== null ? ' that holds JSON: give the JSON itself, encoded once' : '';
  } catch {
    return '';
  }
}

function invalid(message: string): Failure {
  return new Failure('InvalidInput', `Input: ${message}`);
}
