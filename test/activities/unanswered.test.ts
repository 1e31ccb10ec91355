import assert from 'node:assert/strict';
import { ServiceError } from '@temporalio/client';
import { unanswered } from '../../src/activities/unanswered.js';

describe('what Temporal does not say', () => {
  /** An error as gRPC makes it. */
  const answer = (code: number, status: string): Error =>
    Object.assign(new Error(`${code} ${status}: of a key`), { code, details: 'of a key', metadata: {} });

  it('is told with the server’s word for why, and asked again', () => {
    const failure = unanswered(answer(12, 'UNIMPLEMENTED'), 'when it was due');
    const told = {
      type: 'Conflict',
      message: 'Temporal did not say when it was due (UNIMPLEMENTED). It is asked again.',
    };
    assert.throws(() => {
      throw failure;
    }, told);
    const wrapped = new ServiceError('it failed', { cause: answer(14, 'UNAVAILABLE') });
    assert.match(String(unanswered(wrapped, 'how it stands')), /did not say how it stands \(UNAVAILABLE\)/);
  });

  it('is final where the worker may not ask', () => {
    assert.throws(
      () => {
        throw unanswered(answer(7, 'PERMISSION_DENIED'), 'when it was due');
      },
      {
        type: 'PermissionDenied',
        final: true,
        message: /key must be able to read the namespace's workflows and schedules/,
      },
    );
  });

  it('stays what it is where it is no answer of the server', () => {
    const error = new TypeError('a defect');
    assert.equal(unanswered(error, 'anything'), error);
  });
});
