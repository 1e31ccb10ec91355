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
import { InputFailure, type Wording } from '../pipeline/input-failure.js';
import { exactObject, oneOf, shapeProblems, textThat, trueOrFalse, wholeNumber } from '../pipeline/shape.js';
import { shownValue } from '../pipeline/shown-value.js';
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
  const { from, to, keys, last, lookback, only, tries, onFailure, maxFailures } = input;
  const ways = [from ?? to, keys, last].filter((way) => way !== undefined);
  if (ways.length > 1) {
    throw invalid(({ field }) => {
      const range = `${field('from')}/${field('to')}`;
      const given = [(from ?? to) && range, keys && field('keys'), last && field('last')].filter(Boolean).join(' and ');
      return `${given} are given: expected one of ${range}, ${field('keys')} and ${field('last')}. Leave the others out.`;
    });
  }
  if (to !== undefined && from === undefined) {
    throw invalid(
      ({ field, value }) =>
        `${field('to')} is ${value(to)} and ${field('from')} is missing: expected both, or ${field('from')} alone for all up to the newest finished.`,
    );
  }
  if (ways.length === 0 && !only) {
    throw invalid(
      ({ field, example }) =>
        `no partitions are named: expected ${field('from')} (and ${field('to')}), ${field('keys')}, ${field('last')}, or ${field('only')}, ` +
        `such as ${example('only', ['missing', 'failed'])} for all of those.`,
    );
  }
  if (lookback !== undefined && last === undefined) {
    throw invalid(
      ({ field }) =>
        `${field('lookback')} is ${lookback} and ${field('last')} is left out: expected ${field('last')} with it.`,
    );
  }
  if (tries !== undefined && !only?.includes('failed')) {
    throw invalid(
      ({ field }) =>
        `${field('tries')} is ${tries} and ${field('only')} has no failed: expected ${field('only')} with failed in it.`,
    );
  }
  if (maxFailures !== undefined && (onFailure ?? 'continue') === 'continue') {
    throw invalid(
      ({ field }) =>
        `${field('maxFailures')} is ${maxFailures} and ${field('onFailure')} is ${onFailure ?? 'left out'}: expected ${field('onFailure')} pause or stop with it.`,
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
  if (extra.length > 0) throw invalid(() => `${extra.length + 1} arguments are given: ${expected}.`);
  if (raw === undefined || raw === null) throw invalid(() => `none is given: ${expected}.`);
  if (typeof raw === 'string')
    throw invalid(() => `it is ${shownValue(raw)}, a text${quotedObject(raw)}: ${expected}.`);
  if (typeof raw !== 'object' || Array.isArray(raw)) throw invalid(() => `it is ${shownValue(raw)}: ${expected}.`);
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw invalid((wording) => {
    const problems = shapeProblems(parsed.error, raw, wording).map(({ message }) => message);
    const more = problems.length > 3 ? ` And ${problems.length - 3} more.` : '';
    return problems.slice(0, 3).join(' ') + more;
  });
}

function quotedObject(text: string): string {
  try {
    const inner: unknown = JSON.parse(text);
    return typeof inner === 'object' && inner !== null ? ' that holds JSON: give the JSON itself, encoded once' : '';
  } catch {
    return '';
  }
}

function invalid(said: (wording: Wording) => string): InputFailure {
  return new InputFailure(said, 'Input: ');
}
