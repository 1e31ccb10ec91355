import assert from 'node:assert/strict';
import { MAX_KEYS } from '../../src/contract.js';
import { Failure } from '../../src/failure.js';
import { parseBackfillInput, parsePartitionInput } from '../../src/plan/parse-input.js';

const refused = (parse: () => unknown, message: RegExp): void => {
  assert.throws(parse, (error) => {
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.type, 'InvalidInput');
    assert.match(error.message, message);
    return true;
  });
};

describe('input of backfill: what is taken', () => {
  const inputs: object[] = [
    { pipeline: 'sales_summary', from: '2024-02-01', to: '2024-02-29' },
    { pipeline: 'mart/sales_2', from: '2024-02-01' },
    { pipeline: 's', keys: ['2024-02-01', '2024-02-03..2024-02-05'] },
    { pipeline: 's', last: 7 },
    { pipeline: 's', only: ['missing', 'failed', 'outdated'] },
    {
      pipeline: 's',
      from: '2024',
      only: ['missing'],
      order: 'newest-first',
      concurrency: 100,
      priority: 5,
      onBusy: 'skip',
      includeUnfinished: true,
      dryRun: false,
    },
  ];
  for (const input of inputs) {
    it(JSON.stringify(input), () => assert.deepEqual(parseBackfillInput(input, []), input));
  }
});

describe('input of backfill: what is refused', () => {
  const example =
    /expected one JSON object such as \{"pipeline":"sales_summary","from":"2024-02-01","to":"2024-02-29"\}\.$/;
  const noObjects: [string, unknown, RegExp][] = [
    ['a bare text', '2024-01-01', /^Input: it is "2024-01-01", a text: expected/],
    [
      'JSON inside a text',
      '{"pipeline":"s","last":1}',
      /, a text that holds JSON: give the JSON itself, encoded once: /,
    ],
    ['JSON inside a text inside a text', '"{\\"pipeline\\":\\"s\\"}"', /, a text: /],
    ['an empty list', [], /^Input: it is an empty list: /],
    ['a list', [{ pipeline: 's' }], /^Input: it is a list of 1: /],
    ['none', undefined, /^Input: none is given: /],
    ['null', null, /^Input: none is given: /],
    ['a number', 5, /^Input: it is 5 \(a number\): /],
    ['a truth value', true, /^Input: it is true: /],
  ];
  for (const [what, raw, message] of noObjects) {
    it(what, () => {
      refused(() => parseBackfillInput(raw, []), message);
      refused(() => parseBackfillInput(raw, []), example);
      refused(() => parsePartitionInput(raw, []), message);
    });
  }

  it('a second argument', () => {
    refused(
      () => parseBackfillInput({ pipeline: 's', last: 1 }, ['2024']),
      /^Input: 2 arguments are given: expected one JSON object/,
    );
    refused(() => parsePartitionInput({ pipeline: 's', key: '2024' }, [{}, {}]), /^Input: 3 arguments are given/);
  });

  const wrong: [string, Record<string, unknown>, RegExp][] = [
    ['a number for a key', { from: 5 }, /^Input: from is 5 \(a number\): expected a key such as 2024-02-29\.$/],
    ['null for a key', { from: '2024', to: null }, /to is null: expected a key/],
    ['an empty key', { from: '' }, /from is "": expected a key/],
    ['no pipeline', { pipeline: undefined, last: 1 }, /^Input: pipeline is missing: expected a pipeline's name such as sales_summary/],
    ['a number for a pipeline', { pipeline: 1, last: 1 }, /pipeline is 1 \(a number\)/],
    ['a path for a pipeline', { pipeline: '../etc/passwd', last: 1 }, /pipeline is "\.\.\/etc\/passwd": expected/],
    ['a file for a pipeline', { pipeline: 'sales.sql', last: 1 }, /pipeline is "sales\.sql": expected/],
    ['an unknown field', { last: 1, concurency: 3 }, /^Input: unknown field "concurency"\. Did you mean concurrency\? There are: pipeline, from, to, keys,/],
    ['a field in another way of writing', { last: 1, dry_run: true }, /unknown field "dry_run"\. Did you mean dryRun\?/],
    ['two unknown fields', { last: 1, foo: 1, bar: 2 }, /unknown field "foo"\..* There are: .* unknown field "bar"\.$/],
    ['nothing named', {}, /^Input: no partitions are named: expected from \(and to\), keys, last, or only/],
    ['to without from', { to: '2024-01-01' }, /^Input: to is "2024-01-01" and from is missing: expected both/],
    ['from and keys', { from: '2024', keys: ['2024'] }, /^Input: from\/to and keys are given: expected one of/],
    ['from and last', { from: '2024', last: 1 }, /^Input: from\/to and last are given/],
    ['keys and last', { keys: ['2024'], last: 1 }, /^Input: keys and last are given/],
    ['to and last', { to: '2024', last: 1 }, /^Input: from\/to and last are given/],
    ['no keys', { keys: [] }, /keys is an empty list: expected a list of 1 to 10000 entries/],
    ['too many keys', { keys: Array<string>(MAX_KEYS + 1).fill('2024') }, /keys is a list of 10001: expected a list of 1 to 10000 entries/],
    ['a text for keys', { keys: '2024' }, /keys is "2024": expected a list of 1 to 10000 entries/],
    ['a number in keys', { keys: ['2024', 2025] }, /keys\[1\] is 2025 \(a number\): expected a key or a range/],
    ['no partitions at last', { last: 0 }, /last is 0 \(a number\): expected a whole number from 1/],
    ['part of a partition', { last: 1.5 }, /last is 1\.5/],
    ['a text for a number', { last: '3' }, /last is "3": expected a whole number/],
    ['no states', { only: [] }, /only is an empty list: expected a list of missing, failed, outdated/],
    ['a state for a list', { only: 'missing' }, /only is "missing": expected a list of missing, failed, outdated/],
    ['a state that only does not take', { only: ['filled'] }, /only\[0\] is "filled": expected one of missing, failed, outdated/],
    ['another order', { last: 1, order: 'asc' }, /order is "asc": expected one of oldest-first, newest-first/],
    ['too many at once', { last: 1, concurrency: 5000 }, /concurrency is 5000 \(a number\): expected a whole number from 1 to 100/],
    ['none at once', { last: 1, concurrency: 0 }, /concurrency is 0/],
    ['no number', { last: 1, concurrency: NaN }, /concurrency is NaN/],
    ['another priority', { last: 1, priority: 6 }, /priority is 6 \(a number\): expected a whole number from 1 to 5/],
    ['another policy', { last: 1, onBusy: 'queue' }, /onBusy is "queue": expected one of wait, skip, fail/],
    ['a text for a truth value', { last: 1, dryRun: 'false' }, /dryRun is "false": expected true or false/],
    ['a very long pipeline', { pipeline: 'x'.repeat(1_500_000), last: 1 }, /^Input: pipeline is "x{80}…": expected .* of at most 200 characters\.$/],
    ['a very long key', { keys: ['x'.repeat(1_500_000)] }, /^Input: keys\[0\] is "x{80}…": expected a key or a range .{0,80}$/],
    ['a very long field', { ['x'.repeat(1_500_000)]: 1, last: 1 }, /^.{0,400}$/],
    ['a very long text, cut', { from: 'x'.repeat(5000), order: 'y'.repeat(5000) }, /^.{0,400}$/],
  ]; // prettier-ignore
  for (const [what, fields, message] of wrong) {
    it(what, () => refused(() => parseBackfillInput({ pipeline: 's', ...fields }, []), message));
  }

  it('names several wrong fields at once', () => {
    refused(
      () => parseBackfillInput({ pipeline: 1, from: 2, to: 3, last: 'x', order: 0 }, []),
      /pipeline is 1 .* from is 2 .* to is 3 .* And 2 more\.$/,
    );
  });

  it('takes no field from a prototype', () => {
    refused(
      () => parseBackfillInput(JSON.parse('{"pipeline":"s","last":1,"__proto__":{"from":"2024"}}'), []),
      /unknown field/,
    );
  });
});

describe('input of partition', () => {
  it('is taken', () => {
    const input = { pipeline: 's', key: '2024-02-29', onBusy: 'fail', includeUnfinished: true };
    assert.deepEqual(parsePartitionInput(input, []), input);
  });

  it('is refused', () => {
    refused(
      () => parsePartitionInput({ pipeline: 's' }, []),
      /^Input: key is missing: expected a key such as 2024-02-29\.$/,
    );
    refused(() => parsePartitionInput({ pipeline: 's', key: 20240229 }, []), /key is 20240229 \(a number\)/);
    refused(() => parsePartitionInput({ pipeline: 's', key: '2024', from: '2024' }, []), /unknown field "from"\./);
    refused(
      () => parsePartitionInput({ pipeline: 's', keys: ['2024'] }, []),
      /unknown field "keys"\. Did you mean key\?.* key is missing/,
    );
  });
});
