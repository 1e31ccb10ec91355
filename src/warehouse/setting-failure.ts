import { FAILURES } from '../contract.js';
import { Failure } from '../failure.js';
import { sqlstate, toFailure } from './errors.js';

/** Settings that ask something of a partition's source. */
export type AskingSetting = 'ready' | 'changed';

/** A setting of a pipeline that gives no answer. */
export function refusedSetting(pipeline: string, name: AskingSetting, what: string): Failure {
  return new Failure('InvalidPipeline', `\`${name}\` of ${pipeline} ${what}.`);
}

/**
 * Runs a statement of one setting. What the server says against it names the setting, else the pipeline's own query would be
 * searched for it; a lost connection, a lock and the like come as they are, and so does a statement that writes where it may only
 * read, since what that means is for the caller to say. `beforeRows`: as in `toFailure`.
 */
export async function namingSetting<T>(
  pipeline: string,
  name: AskingSetting,
  work: () => Promise<T>,
  options: { readonly beforeRows?: boolean } = {},
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = sqlstate(error);
    if (code === undefined || code === '25006') throw error;
    const failure = toFailure(error, options);
    if (FAILURES[failure.type] === 'world') throw error;
    throw new Failure(failure.type, `\`${name}\` of ${pipeline}: ${failure.message}`, failure.options);
  }
}
