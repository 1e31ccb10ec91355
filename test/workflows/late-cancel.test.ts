import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { EndBackfillRequest } from '../../src/activities/messages.js';
import type { BackfillResult } from '../../src/contract.js';
import { cancelledWhileEnding } from './cancelled-while-ending.js';
import { cancelled, Harness } from './harness.js';
import { days, eventsOf, failedTasks, type Script, type Scripted, scripted } from './scripted.js';

const KEYS = days('2024-01-01', 2);

describe('a cancel that comes while the ledger is told the end', () => {
  const harness = new Harness();

  const cancelledLate = (script: Script) =>
    cancelledWhileEnding(harness, (ending) => scripted({ keys: KEYS, ...script, ...ending }));

  const words = (calls: Scripted): EndBackfillRequest['outcome'][] =>
    calls.requests('endBackfill').map(({ outcome }) => outcome);

  it('is the ledger’s last word, too, where partitions had failed', async () => {
    const [handle, calls] = await cancelledLate({
      fill: async (key) => {
        if (key === KEYS[0]) throw ApplicationFailure.nonRetryable('bad', 'DataError', { attempt: 1 });
      },
    });
    await assert.rejects(handle.result(), cancelled);
    assert.deepEqual(words(calls), ['incomplete', 'cancelled']);
    const [, last] = calls.requests('endBackfill');
    assert.deepEqual([last?.run, last?.filled, last?.failed], ['run', 1, 1]);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('changes nothing where all were filled: it is done, here and there', async () => {
    const [handle, calls] = await cancelledLate({});
    assert.equal(((await handle.result()) as BackfillResult).filled, KEYS.length);
    assert.deepEqual(words(calls), ['done']);
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });
});
