import assert from 'node:assert/strict';
import type { PartitionState } from '../../src/contract.js';
import { stateOf } from '../../src/warehouse/partition-state.js';

const at = new Date(0);

describe('state of a partition', () => {
  const states: [string, Parameters<typeof stateOf>[0], PartitionState][] = [
    ['no row', undefined, 'missing'],
    ['a fill under this fingerprint', { outcome: 'filled', filledAt: at, fingerprint: 'a' }, 'filled'],
    ['a fill under another one', { outcome: 'filled', filledAt: at, fingerprint: 'b' }, 'outdated'],
    ['a fill of unknown fingerprint', { outcome: 'filled', filledAt: at, fingerprint: null }, 'outdated'],
    ['a failure over older rows', { outcome: 'failed', filledAt: at, fingerprint: 'a' }, 'failed'],
    ['a failure over outdated rows', { outcome: 'failed', filledAt: at, fingerprint: 'b' }, 'failed'],
    ['a failure and no rows ever', { outcome: 'failed', filledAt: null, fingerprint: null }, 'failed'],
    ['a row without a fill', { outcome: 'filled', filledAt: null, fingerprint: null }, 'missing'],
  ];
  for (const [what, row, state] of states) it(`${what}: ${state}`, () => assert.equal(stateOf(row, 'a'), state));
});
