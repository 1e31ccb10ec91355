import assert from 'node:assert/strict';
import { MAX_WAITING } from '../../src/contract.js';
import { WaitingLine } from '../../src/workflows/waiting-line.js';
import { days } from './scripted.js';

const group = (first: string, count: number) => ({ keys: days(first, count), since: 0, due: 0 });

describe('the line of partitions whose sources are not ready', () => {
  it('keeps room for what is tried, up to its bound', () => {
    const line = new WaitingLine([group('2000-01-01', MAX_WAITING - 4)]);
    const [one, other] = [days('2024-01-01', 3), days('2024-02-01', 2)];
    assert.equal(line.reserve(one), true);
    assert.equal(line.reserve(other), false);
    line.settle(one, [group('2024-01-01', 2)]);
    assert.equal(line.size, MAX_WAITING - 2);
    assert.equal(line.reserve(other), true);
  });

  it('full, has lanes wait for what is in it, as long as some is free', async () => {
    const line = new WaitingLine([group('2000-01-01', MAX_WAITING)]);
    assert.equal(line.full, true);
    const taken = await line.next(() => false);
    assert.equal(taken?.keys.length, MAX_WAITING);
    assert.deepEqual([line.size, line.full], [0, false]);
    assert.equal(await line.next(() => false), undefined);
  });

  it('is carried in far less than a payload may hold', () => {
    const now = Date.UTC(2024, 0, 1);
    const groups = days('2000-01-01', MAX_WAITING).map((day) => ({ keys: [`${day}T13Z`], since: now, due: now }));
    const line = new WaitingLine(groups);
    assert.equal(line.reserve(['2024-01-01T00Z']), false);
    assert.ok(JSON.stringify(line.groups).length < 128 * 1024);
  });

  it('gives what is due first', async () => {
    const line = new WaitingLine([
      { keys: ['2024-01-01'], since: 0, due: 2 },
      { keys: ['2024-01-02'], since: 0, due: 1 },
    ]);
    assert.deepEqual((await line.next(() => false))?.keys, ['2024-01-02']);
    assert.deepEqual(line.groups, [{ keys: ['2024-01-01'], since: 0, due: 2 }]);
  });
});
