import { Failure } from '../failure.js';
import { errorClass } from './errors.js';
import { ExitCalled } from './source-being-read.js';

/** A function of a pipeline's code. */
export type PipelineCall = 'rows()' | 'ready()' | 'changed()';

/** What the code of a pipeline threw in a `call` of its own, as its fill's failure. */
export function sourceFailure(pipeline: string, key: string, error: unknown, call: PipelineCall = 'rows()'): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof ExitCalled) return exitFailure(pipeline, key);
  return new Failure(
    'SourceFailed',
    `${call} of ${pipeline} threw ${thrown(error)} for ${key}. The old rows stand.${isSourceError(error) ? '' : ' Throw SourceError to have its message shown here.'}`,
  );
}

/** What the code of a pipeline threw where no call of `rows()` could catch it, as its fill's failure. */
export function strayFailure(pipeline: string, key: string, error: unknown): Failure {
  if (error instanceof ExitCalled) return exitFailure(pipeline, key);
  return new Failure(
    'SourceFailed',
    `The code of ${pipeline} threw ${thrown(error)}, an error outside what rows() awaits, for ${key}. The old rows stand. ` +
      'Await every promise, and catch what callbacks, such as those of timers and events, may throw.',
  );
}

function exitFailure(pipeline: string, key: string): Failure {
  return new Failure(
    'SourceFailed',
    `The code of ${pipeline} called process.exit for ${key}, which would have ended the worker with all its other fills. ` +
      'The old rows stand. Throw an error in its place.',
  );
}

/** The class and the code of what the source threw. Its message only where the source vouches for it by `SourceError`: any other may hold rows. */
function thrown(error: unknown): string {
  const name = error instanceof Error ? errorClass(error) : typeof error;
  const message = isSourceError(error) ? `: ${error.message}` : '';
  const code = codeOf(error) ?? codeOf(error instanceof Error ? error.cause : undefined);
  return `${name}${code ? ` (${code})` : ''}${message}`;
}

function isSourceError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'SourceError';
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' && /^[A-Z0-9_]{1,40}$/.test(error.code) ? error.code : undefined;
}
