import { Failure } from '../failure.js';
import type { Database } from './database.js';
import { toFailure } from './errors.js';

/**
 * What an error of the database that a pipeline reads from means, saying that it is that one. A lost source is
 * `DatabaseUnavailable`, as a lost target is; a query that writes there is `InvalidPipeline`, since its transaction is
 * read-only. Never throws.
 */
export function toSourceFailure(
  error: unknown,
  source: Database,
  pipeline: string,
  options: { readonly beforeRows?: boolean } = {},
): Failure {
  const failure = toFailure(error, options);
  const on = `On the source of ${pipeline} (${source.place})`;
  const said = { ...failure.options, place: source.place };
  switch (failure.options.sqlstate) {
    case '25006':
      return new Failure(
        'InvalidPipeline',
        `${on}: PostgreSQL answered 25006. The query writes, or calls a function that writes: a source is only read. Take that out of the query.`,
        said,
      );
    case '42501':
      return new Failure(
        'PermissionDenied',
        `${on}: ${withoutAdvice(failure)} Its role needs SELECT on what the query reads.`,
        said,
      );
    default:
      return new Failure(failure.type, `${on}: ${withoutPlace(failure, source)}`, said);
  }
}

/** A connection that could not be made is placed already. */
function withoutPlace({ message }: Failure, { place }: Database): string {
  const placed = [`The source ${place}: `, `${place}: `].find((prefix) => message.startsWith(prefix));
  return message.slice(placed?.length ?? 0);
}

/** The server's own sentence: what follows it is said of the target's role. */
function withoutAdvice(failure: Failure): string {
  const advice = failure.message.indexOf(' Print the grants');
  return advice < 0 ? failure.message : failure.message.slice(0, advice);
}
