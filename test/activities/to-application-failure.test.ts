import assert from 'node:assert/strict';
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { toApplicationFailure, withinAttempts } from '../../src/activities/to-application-failure.js';
import { KeyError } from '../../src/calendar/key-error.js';
import { FAILURES, type FailureType } from '../../src/contract.js';
import { Failure } from '../../src/failure.js';

const MARKER = 'row-value-4711';

function told(error: unknown, attempt = 1, signal = new AbortController().signal): ApplicationFailure {
  const failure = toApplicationFailure(error, { attempt }, signal);
  assert.ok(failure instanceof ApplicationFailure, failure.constructor.name);
  return failure;
}

describe('an activity’s error', () => {
  for (const type of Object.keys(FAILURES) as FailureType[]) {
    it(`keeps its type, and is final by the table: ${type}`, () => {
      const failure = told(new Failure(type, 'what and what to do'), 2);
      assert.equal(failure.type, type);
      assert.equal(failure.message, 'what and what to do');
      assert.equal(failure.nonRetryable, FAILURES[type] === 'no');
      assert.deepEqual(failure.details, [{ attempt: 2 }]);
    });
  }

  it('is final once its tries are used up, and carries the delay it asks for', () => {
    assert.equal(told(new Failure('SourceFailed', 'x', { final: true })).nonRetryable, true);
    assert.equal(told(new Failure('Conflict', 'x', { retryAfterMs: 7_000 })).nextRetryDelay, 7_000);
  });

  it('tells of what Repave does not know only its class, and carries no cause', () => {
    class OddError extends Error {}
    const failure = told(new OddError(MARKER, { cause: new Error(MARKER) }));
    assert.equal(failure.type, 'Unexpected');
    assert.match(failure.message, /OddError/);
    assert.doesNotMatch(JSON.stringify(failure) + failure.message + String(failure.stack), new RegExp(MARKER));
    assert.equal(failure.cause, undefined);
    assert.equal(failure.nonRetryable, false);
    assert.equal(told(new OddError(MARKER), 3).nonRetryable, true);
    assert.match(told('a thrown text').message, /string/);
  });

  it('that counts, and that no claim counts, is final at the last attempt', () => {
    assert.equal(withinAttempts(new Failure('Unexpected', 'x'), 2).final, false);
    assert.equal(withinAttempts(new Failure('Unexpected', 'x'), 3).final, true);
    assert.equal(withinAttempts(new Failure('DatabaseUnavailable', 'x'), 99).final, false);
  });

  it('names a key that is none as input that is wrong', () => {
    assert.equal(told(new KeyError('x', 'is no day', 'a day')).type, 'InvalidInput');
  });

  it('stays a cancel where it was one', () => {
    const abort = new AbortController();
    const reason = new CancelledFailure('CANCELLED');
    abort.abort(reason);
    assert.equal(toApplicationFailure(reason, { attempt: 1 }, abort.signal), reason);
    const aborted = Object.assign(new Error(MARKER), { name: 'AbortError' });
    assert.ok(toApplicationFailure(aborted, { attempt: 1 }, abort.signal) instanceof CancelledFailure);
    // A failure that came before the cancel did is told as it is.
    assert.equal(told(new Failure('CheckFailed', 'x'), 1, abort.signal).type, 'CheckFailed');
    // Somebody else's abort is no cancel of ours.
    assert.equal(told(aborted).type, 'Unexpected');
  });
});
