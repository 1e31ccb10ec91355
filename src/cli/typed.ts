import { InputFailure, type Wording } from '../pipeline/input-failure.js';
import { shownValue } from '../pipeline/shown-value.js';
import { flagOf } from './flag.js';

/** What was typed for each field of a request: a flag, unless `argument` names the argument that stands for it. */
export function typedWording(argument: (path: string) => string | undefined = () => undefined): Wording {
  return {
    field: (path) => argument(path) ?? flagOf(path.replace(/\[\d+\]$/, '')),
    // Typed, all is text.
    value: (given) => (typeof given === 'number' ? String(given) : shownValue(given)),
    example: (field, value) => `${flagOf(field)} ${value.join(',')}`,
  };
}

/** Does something with a request that was typed; what is wrong with that is said in the words that were typed. */
export async function asTyped<Result>(wording: Wording, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof InputFailure ? error.in(wording) : error;
  }
}

/** Where a worker says what is wrong with a request, its message begins with the field: the same in the words that were typed. */
export function workersWordAsTyped(message: string, { field }: Wording): string {
  return message
    .replace(/^(from|to|last|only|keys\[\d+\])(?=(, (before|behind) the dots,)? (is|has|goes) )/, field)
    .replace(/ \(to\)(?=: expected the earlier one first)/, () => ` (${field('to')})`);
}
