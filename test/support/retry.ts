import { FAILURES } from '../../src/contract.js';
import type { Failure } from '../../src/failure.js';
import type { FillOutcome } from '../../src/warehouse/fill-request.js';
import { settled } from './fill.js';

/** Tries after which a test says that a fill does not get through. */
const TRIES = 20;

/**
 * Tries a fill as attempt 1, 2, 3, … until it ends well, as a retry policy does, without its pauses. Rejects with a failure
 * that is final or counts against the pipeline: what the world does must be neither.
 */
export async function fillWithRetries(
  attempt: (number: number) => Promise<FillOutcome>,
  first = 1,
): Promise<{ readonly outcome: FillOutcome; readonly failures: readonly Failure[]; readonly attempt: number }> {
  const failures: Failure[] = [];
  for (let number = first; number < first + TRIES; number++) {
    const end = await settled(attempt(number));
    if (!end.failure) return { outcome: end.value, failures, attempt: number };
    if (FAILURES[end.failure.type] !== 'world') throw end.failure;
    failures.push(end.failure);
  }
  throw new Error(`No fill in ${TRIES} tries: ${failures.map(({ message }) => message).join(' / ')}`);
}
