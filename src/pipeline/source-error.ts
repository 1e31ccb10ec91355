/**
 * An error whose message a pipeline's author vouches for: it holds no value of a row, no password and no URL with one, so
 * it is shown to callers, in Temporal and in the ledger. Of any other error that `rows` throws only class and code are.
 *
 * @example
 * throw new SourceError(`the rates answered ${response.status}`);
 */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}
