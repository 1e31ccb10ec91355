import assert from 'node:assert/strict';
import { backfillWorkflowId } from '../../src/client.js';
import { backfillMemo, differences } from '../../src/client/input-memo.js';
import type { BackfillInput } from '../../src/contract.js';

describe('the id of a backfill', () => {
  const ids: [BackfillInput, string | RegExp][] = [
    [{ pipeline: 'p', from: '2024-01-01', to: '2024-01-31' }, 'backfill/p/2024-01-01..2024-01-31'],
    [{ pipeline: 'a/b', from: '2024-01' }, 'backfill/a/b/2024-01..'],
    [{ pipeline: 'p', last: 7 }, 'backfill/p/last-7'],
    [{ pipeline: 'p', last: 7, only: ['failed', 'missing'] }, 'backfill/p/last-7+missing+failed'],
    [{ pipeline: 'p', only: ['outdated'] }, 'backfill/p/all+outdated'],
    [{ pipeline: 'p', keys: ['2024-01-01', '2024-01-05'] }, /^backfill\/p\/keys-[0-9a-f]{16}$/],
    [{ pipeline: 'p', from: '2024-01-01', dryRun: true }, 'backfill/p/2024-01-01..+dry-run'],
  ];
  for (const [input, id] of ids) {
    it(`says what it covers: ${String(id)}`, () => {
      const made = backfillWorkflowId(input);
      if (typeof id === 'string') assert.equal(made, id);
      else assert.match(made, id);
    });
  }

  it('is the same for the same set of keys in another order, and another for another set', () => {
    const id = (...keys: string[]) => backfillWorkflowId({ pipeline: 'p', keys });
    assert.equal(id('a', 'b'), id('b', 'a', 'b'));
    assert.notEqual(id('a', 'b'), id('a', 'c'));
  });
});

describe('what a run remembers of its input', () => {
  const base: BackfillInput = { pipeline: 'p', from: '2024-01-01' };

  it('is the same whether a default is written out or not', () => {
    const spelled: BackfillInput = {
      ...base,
      order: 'oldest-first',
      priority: 3,
      onBusy: 'wait',
      includeUnfinished: false,
      dryRun: false,
      to: undefined,
    };
    assert.deepEqual(differences(backfillMemo(base), backfillMemo(spelled)), []);
  });

  it('names each field that differs', () => {
    const other: BackfillInput = { ...base, to: '2024-02-01', onBusy: 'skip' };
    assert.deepEqual(differences(backfillMemo(base), backfillMemo(other)), ['onBusy', 'to']);
  });

  it('stays small for ten thousand keys, and still tells them apart', () => {
    const keys = Array.from({ length: 10_000 }, (_, i) => `2024-${i}`);
    const memo = backfillMemo({ pipeline: 'p', keys });
    assert.ok(JSON.stringify(memo).length < 200);
    assert.deepEqual(differences(memo, backfillMemo({ pipeline: 'p', keys: keys.slice(1) })), ['keys']);
  });
});
