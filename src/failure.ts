import { FAILURES, type FailureType } from './contract.js';

/**
 * The one error that leaves Repave's own code for a reason a caller can act on. Its message says what was given, what was
 * expected and what to do, and never holds a row's values, a password or a URL, so it may go to Temporal, logs and people.
 */
export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    readonly type: FailureType,
    message: string,
    readonly options: {
      /** Milliseconds after which a retry makes sense. */
      readonly retryAfterMs?: number;
      /** Milliseconds up to which that may be prolonged the longer it goes on. Absent: it may not. */
      readonly longestWaitMs?: number;
      /** Set where a retryable kind has used up its tries. */
      readonly final?: boolean;
      /** SQLSTATE of the server's error, where there was one. */
      readonly sqlstate?: string;
      /** The database that it is about, where that is known: never its user or its password. */
      readonly place?: string;
    } = {},
  ) {
    super(message);
  }

  /** Whether no retry can help: the type's own rule, or tries used up. */
  get final(): boolean {
    return FAILURES[this.type] === 'no' || this.options.final === true;
  }
}
