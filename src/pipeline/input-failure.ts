import { Failure } from '../failure.js';
import { shownValue } from './shown-value.js';

/** How what was given is called to whoever gave it. */
export interface Wording {
  /** A field by its path in the input: `maxFailures`, `keys[3]`. */
  readonly field: (path: string) => string;
  /** A value that was given for one. */
  readonly value: (given: unknown) => string;
  /** How a field is given a value, to be copied. */
  readonly example: (field: string, value: readonly string[]) => string;
}

/** The contract's own names, and JSON's values. */
export const CONTRACT_WORDING: Wording = {
  field: (path) => path,
  value: shownValue,
  example: (field, value) => JSON.stringify({ [field]: value }),
};

/**
 * An input that is wrong, said in the contract's words. Who has typed it in others, flags say, can have it said in those; what is
 * wrong is judged once.
 */
export class InputFailure extends Failure {
  /** `lead`: said before it to those who gave an input as a whole. */
  constructor(
    readonly said: (wording: Wording) => string,
    lead = '',
  ) {
    super('InvalidInput', lead + said(CONTRACT_WORDING));
  }

  /** The same in other words. */
  in(wording: Wording): Failure {
    return new Failure('InvalidInput', this.said(wording));
  }
}
