import assert from 'node:assert/strict';
import fc from 'fast-check';
import { MAX_KEYS } from '../../src/contract.js';
import { Failure } from '../../src/failure.js';
import { parseBackfillInput, parsePartitionInput } from '../../src/plan/parse-input.js';
import { schema } from '../support/schemas.js';

const PLAN = 'p1-3f9a2c01b4d7-failed3-missing2-0f1e2d3c4b5a69788796';
const NAMED = { pipeline: 'sales_summary', from: '2024-02-01', to: '2024-02-29' };

/** Inputs, each with whether it is right. What the calendar or the ledger says of them is for the plan. */
const BACKFILLS: readonly (readonly [right: boolean, input: unknown])[] = [
  [true, NAMED],
  [true, { pipeline: 'a/b_1', from: '2024' }],
  [true, { pipeline: 'a', keys: ['2024-02-29', '2024-03-01..2024-03-31'] }],
  [true, { pipeline: 'a', last: 7 }],
  [true, { pipeline: 'a', last: 1_000_000 }],
  [true, { pipeline: 'a', only: ['missing', 'failed', 'outdated'] }],
  [true, { ...NAMED, only: ['missing'], plan: PLAN, order: 'newest-first', concurrency: 100, priority: 5 }],
  [true, { ...NAMED, canary: 1, onFailure: 'pause', maxFailures: 3, onBusy: 'skip' }],
  [true, { ...NAMED, includeUnfinished: false, dryRun: true }],
  [true, { pipeline: 'a', keys: Array.from({ length: MAX_KEYS }, () => '2024') }],
  [false, { pipeline: 'a', keys: Array.from({ length: MAX_KEYS + 1 }, () => '2024') }],
  [false, {}],
  [false, []],
  [false, 'sales_summary'],
  [false, 5],
  [false, null],
  [false, { pipeline: 'a' }],
  [false, { from: '2024' }],
  [false, { pipeline: 'Sales', from: '2024' }],
  [false, { pipeline: 'a//b', from: '2024' }],
  [false, { pipeline: 'a/', from: '2024' }],
  [false, { pipeline: 'a'.repeat(201), from: '2024' }],
  [false, { pipeline: 'a', to: '2024' }],
  [false, { pipeline: 'a', only: ['missing'], to: '2024' }],
  [false, { pipeline: 'a', from: '' }],
  [false, { pipeline: 'a', from: 'x'.repeat(201) }],
  [false, { pipeline: 'a', from: 20240201 }],
  [false, { pipeline: 'a', from: null, last: 3 }],
  [false, { pipeline: 'a', keys: [] }],
  [false, { pipeline: 'a', keys: [''] }],
  [false, { pipeline: 'a', keys: '2024' }],
  [false, { pipeline: 'a', last: 0 }],
  [false, { pipeline: 'a', last: 1.5 }],
  [false, { pipeline: 'a', last: '7' }],
  [false, { pipeline: 'a', last: 3, from: '2024' }],
  [false, { pipeline: 'a', last: 3, keys: ['2024'] }],
  [false, { pipeline: 'a', keys: ['2024'], to: '2024' }],
  [false, { pipeline: 'a', only: [] }],
  [false, { pipeline: 'a', only: ['filled'] }],
  [false, { ...NAMED, concurrency: 101 }],
  [false, { ...NAMED, priority: 0 }],
  [false, { ...NAMED, plan: 'p1' }],
  [false, { ...NAMED, maxFailures: 2 }],
  [false, { ...NAMED, maxFailures: 2, onFailure: 'continue' }],
  [false, { ...NAMED, onBusy: 'Wait' }],
  [false, { ...NAMED, dryRun: 'yes' }],
  [false, { ...NAMED, dryrun: true }],
];

const PARTITIONS: readonly (readonly [right: boolean, input: unknown])[] = [
  [true, { pipeline: 'a', key: '2024-02-29' }],
  [true, { pipeline: 'a', key: '2024-02-29', onBusy: 'fail', includeUnfinished: true }],
  [false, { pipeline: 'a' }],
  [false, { key: '2024' }],
  [false, { pipeline: 'a', key: '' }],
  [false, { pipeline: 'a', key: ['2024'] }],
  [false, { pipeline: 'a', key: '2024', concurrency: 3 }],
];

/** Texts about as long as they may be; the schema counts characters as JSON does, the parser as JavaScript: the same in ASCII. */
const text = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 4 }),
  fc.nat({ max: 210 }).map((n) => 'x'.repeat(n)),
);
const number = fc.oneof(fc.integer({ min: -1, max: 102 }), fc.constantFrom(1e6, 1e6 + 1, 1.5, 2 ** 53, -0));
const words = fc.constantFrom(
  ...[
    'missing',
    'failed',
    'outdated',
    'filled',
    'oldest-first',
    'continue',
    'pause',
    'stop',
    'wait',
    'skip',
    'fail',
    PLAN,
  ],
);
const scalar = fc.oneof(text, number, words, fc.boolean(), fc.constant(null));
const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.constant({}));
const FIELDS = [
  ...['pipeline', 'from', 'to', 'keys', 'last', 'only', 'plan', 'order', 'concurrency', 'priority', 'canary'],
  ...['onFailure', 'maxFailures', 'onBusy', 'includeUnfinished', 'dryRun', 'key', 'pipelines', '__proto__'],
];

function takes(parse: (raw: unknown, extra: readonly unknown[]) => unknown, input: unknown): boolean {
  try {
    parse(input, []);
    return true;
  } catch (error) {
    if (error instanceof Failure && error.type === 'InvalidInput') return false;
    throw error;
  }
}

for (const [name, parse, table] of [
  ['backfill-input', parseBackfillInput, BACKFILLS],
  ['partition-input', parsePartitionInput, PARTITIONS],
] as const) {
  describe(`the schema ${name} and the parser`, () => {
    const validate = schema(name);
    const rights = table.flatMap(([right, input]) => (right ? [input as Record<string, unknown>] : []));
    const small = rights.filter((input) => JSON.stringify(input).length < 1_000);

    it('agree on inputs that are right or wrong', () => {
      for (const [right, input] of table) {
        const shown = JSON.stringify(input).slice(0, 200);
        assert.equal(takes(parse, input), right, `the parser: ${shown}`);
        assert.equal(validate(input), right, `the schema: ${shown}`);
      }
    });

    it('agree on a right input of which one or two fields are changed, or left out', () => {
      const change = fc.record({ field: fc.constantFrom(...FIELDS), to: fc.option(value, { nil: undefined }) });
      const changed = fc
        .tuple(fc.constantFrom(...small), fc.array(change, { minLength: 1, maxLength: 2 }))
        .map(([input, changes]) => {
          const fields = new Map(Object.entries(input));
          for (const { field, to } of changes) {
            if (to === undefined) fields.delete(field);
            else fields.set(field, to);
          }
          // As it comes out of a payload: a field of any name is a field.
          return JSON.parse(JSON.stringify(Object.fromEntries(fields))) as unknown;
        });
      fc.assert(
        fc.property(changed, (input) => {
          assert.equal(validate(input), takes(parse, input), JSON.stringify(input));
        }),
        { numRuns: 3_000 },
      );
    });
  });
}
