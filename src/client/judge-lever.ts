import { MAX_CONCURRENCY, MAX_REASON_LENGTH, NOT_IN_A_REASON } from '../contract.js';
import { Failure } from '../failure.js';

/** Judges the reason of a `pause`. Throws `InvalidInput`. */
export function judgeReason(reason: unknown): void {
  const expected = `expected a text of 1 to ${MAX_REASON_LENGTH} characters, or none`;
  if (reason === undefined) return;
  if (typeof reason !== 'string') throw refused(`The reason is ${typeof reason}: ${expected}.`);
  if (NOT_IN_A_REASON.test(reason))
    throw refused(`The reason has a control character, such as the end of a line: ${expected}.`);
  if (reason.trim() === '') throw refused(`The reason is empty: ${expected}.`);
  if (reason.length > MAX_REASON_LENGTH) throw refused(`The reason has ${reason.length} characters: ${expected}.`);
}

/** Judges what `setConcurrency` is given. Throws `InvalidInput`. */
export function judgeConcurrency(concurrency: unknown): void {
  if (Number.isInteger(concurrency) && Number(concurrency) >= 1 && Number(concurrency) <= MAX_CONCURRENCY) return;
  const given = typeof concurrency === 'number' ? String(concurrency) : typeof concurrency;
  throw refused(`The concurrency is ${given}: expected a whole number from 1 to ${MAX_CONCURRENCY}.`);
}

function refused(message: string): Failure {
  return new Failure('InvalidInput', message);
}
