import assert from 'node:assert/strict';
import { askedKeys, list } from '../../src/cli/keys.js';
import { selection } from '../../src/cli/selection.js';

describe('keys as plain arguments', () => {
  const cases: readonly (readonly [string, readonly string[], Parameters<typeof askedKeys>[1], object])[] = [
    ['one key is a range of one', ['2024-02-29'], {}, { from: '2024-02-29', to: '2024-02-29' }],
    ['one range is from and to', ['2024-03-01..2024-03-31'], {}, { from: '2024-03-01', to: '2024-03-31' }],
    ['an open range ends at the newest finished', ['2024-03-01..'], {}, { from: '2024-03-01' }],
    [
      'several are keys',
      ['2024-02-29', '2024-03-01..2024-03-31'],
      {},
      { keys: ['2024-02-29', '2024-03-01..2024-03-31'] },
    ],
    ['none leaves the flags', [], { from: '2024-01-01', to: '2024-01-31' }, { from: '2024-01-01', to: '2024-01-31' }],
    ['both are left for the judge to refuse', ['2024-02-29'], { last: 3 }, { last: 3, keys: ['2024-02-29'] }],
    ['a range without a beginning is left for the judge', ['..2024-03-31'], {}, { keys: ['..2024-03-31'] }],
  ];
  for (const [name, plain, flags, expected] of cases) {
    it(name, () => assert.deepEqual(askedKeys(plain, flags), expected));
  }
});

describe('the flags that say which partitions', () => {
  it('leave out what was not given', () => {
    assert.deepEqual(selection([], { only: ['failed'] }), { only: ['failed'] });
  });

  it('give every field of a request that they stand for', () => {
    const flags = { last: 3, lookback: 2, only: ['failed'], tries: 3, order: 'newest-first', includeUnfinished: true };
    assert.deepEqual(selection([], flags), flags);
  });

  it('take lists by comma and repeated', () => {
    assert.deepEqual(list('failed', list('missing, outdated')), ['missing', 'outdated', 'failed']);
  });
});
