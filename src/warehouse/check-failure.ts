import { FAILURES } from '../contract.js';
import { Failure } from '../failure.js';
import type { Check } from '../pipeline/pipeline.js';
import { checkName } from './check-name.js';
import { sqlstate, toFailure } from './errors.js';

/**
 * Runs a statement of one check. What the server says against it names the check; a lost connection, a lock and the like are
 * nothing of the check's and come as they are. `beforeRows`: as in `toFailure`.
 */
export async function naming<T>(
  pipeline: { readonly name: string },
  check: Check,
  work: () => Promise<T>,
  options: { readonly beforeRows?: boolean } = {},
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (sqlstate(error) === undefined) throw error;
    const failure = toFailure(error, options);
    if (FAILURES[failure.type] !== 'no') throw error;
    throw new Failure(
      failure.type,
      `The check ${checkName(check)} of ${pipeline.name}: ${failure.message}`,
      failure.options,
    );
  }
}
