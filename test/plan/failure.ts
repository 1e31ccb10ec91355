import assert from 'node:assert/strict';
import type { FailureType } from '../../src/contract.js';
import { Failure } from '../../src/failure.js';

/** The message of the failure that something throws, which must be of this type. */
export function failure(type: FailureType, what: () => unknown): string {
  try {
    what();
  } catch (error) {
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.type, type);
    return error.message;
  }
  assert.fail(`nothing was thrown: expected ${type}`);
}
