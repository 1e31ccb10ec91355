import { Failure } from '../failure.js';
import type { RowsContext, TypeScriptPipeline } from '../pipeline/pipeline.js';

/** What a pipeline's `rows()` has given, to be asked for one row after the other. Not yet looked at: it is the user's code. */
export type RowIterator =
  | { readonly isAsync: true; readonly iterator: AsyncIterator<unknown> }
  | { readonly isAsync: false; readonly iterator: Iterator<unknown> };

/** Calls `rows()`. Throws what that throws, and `InvalidPipeline` where it returns no rows to iterate over. */
export function openRows(pipeline: TypeScriptPipeline, context: RowsContext): RowIterator {
  const rows: unknown = pipeline.rows(context);
  if (typeof rows === 'object' && rows !== null) {
    const { [Symbol.asyncIterator]: async, [Symbol.iterator]: sync } = rows as Partial<
      AsyncIterable<unknown> & Iterable<unknown>
    >;
    if (async) return { isAsync: true, iterator: async.call(rows) };
    if (sync) return { isAsync: false, iterator: sync.call(rows) };
  }
  throw new Failure(
    'InvalidPipeline',
    `rows() of ${pipeline.name} returned ${rows instanceof Promise ? 'a promise' : 'nothing that can be iterated over'}: write it as \`async *rows(…)\` and yield each row, or return an array of rows.`,
  );
}
