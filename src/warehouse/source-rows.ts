import { Failure } from '../failure.js';
import type { Row, TypeScriptPipeline } from '../pipeline/pipeline.js';
import { refuseMismatch } from './columns.js';
import { copyLine } from './copy-text.js';
import { errorClass } from './errors.js';
import type { FillRequest } from './fill-request.js';
import { SourceBeingRead } from './source-being-read.js';
import { Spool } from './spool.js';
import type { Target, TargetColumn } from './target.js';

/** A TypeScript pipeline's rows for one window, written down. The caller closes the spool. */
export interface SpooledRows {
  readonly spool: Spool;
  /** The columns written, in COPY's order; the partition column alone where no row came. */
  readonly columns: readonly string[];
}

/**
 * Runs the pipeline's own code to its end and spools what it yields, at constant memory: it is asked for the next row only
 * once the last is written. No connection is held meanwhile.
 *
 * Throws `SourceFailed` where it throws, `SchemaMismatch` for a row whose keys are not the columns, `DataError` for a value
 * that cannot be stored; rejects with the signal's reason, without waiting for it, once that is aborted.
 */
export async function spoolRows(
  pipeline: TypeScriptPipeline,
  request: FillRequest,
  target: Target,
  signal: AbortSignal,
  spoolDir: string | undefined,
): Promise<SpooledRows> {
  const spool = await Spool.create(spoolDir);
  let source: RowReader | undefined;
  try {
    let columns: readonly TargetColumn[] | undefined = pipeline.columns && resolve(pipeline, pipeline.columns, target);
    source = openSource(pipeline, request, signal);
    for (;;) {
      const row = await source.next();
      if (row === undefined) break;
      columns ??= resolve(pipeline, Object.keys(row), target);
      refuseOtherKeys(row, columns, spool.rows + 1, pipeline);
      const written = spool.add(copyLine(row, columns, spool.rows + 1));
      if (written) await written;
      if (spool.rows % 1000 === 0) request.onStep?.('spool', spool.rows);
    }
    return { spool, columns: columns?.map(({ name }) => name) ?? [pipeline.partition.column] };
  } catch (error) {
    source?.abandon();
    await spool.close();
    throw error;
  } finally {
    source?.end();
  }
}

function resolve(pipeline: TypeScriptPipeline, names: readonly string[], target: Target): readonly TargetColumn[] {
  refuseMismatch(pipeline.name, names, target, pipeline.partition.column);
  return names.flatMap((name) => target.columns.filter((column) => column.name === name));
}

function refuseOtherKeys(
  row: Row,
  columns: readonly TargetColumn[],
  number: number,
  pipeline: TypeScriptPipeline,
): void {
  for (const key of Object.keys(row)) {
    if (columns.some(({ name }) => name === key)) continue;
    throw new Failure(
      'SchemaMismatch',
      `Row ${number} of ${pipeline.name} has the key ${JSON.stringify(key)}: the columns written are ${columns.map(({ name }) => name).join(', ')} (by \`columns\`, else by the first row).`,
    );
  }
}

interface RowReader {
  /** The next row, or undefined at the end. */
  next(): Promise<Row | undefined>;
  /** Tells the source that nobody reads on, without waiting for it. */
  abandon(): void;
  /** From here on no error of the source's code fails the fill. */
  end(): void;
}

function openSource(pipeline: TypeScriptPipeline, request: FillRequest, signal: AbortSignal): RowReader {
  const { key, start, end, date, endDate } = request.window;
  // One listener for all rows: a promise of the abort, raced with each row, would keep something of every one.
  let interrupt: ((reason: Error) => void) | undefined;
  signal.addEventListener('abort', () => interrupt?.(signal.reason as Error), { once: true });
  let iterator: AsyncIterator<Row> | Iterator<Row>;
  let stray: Failure | undefined;
  const reading = new SourceBeingRead((error) => {
    stray ??= strayFailure(pipeline.name, key, error);
    interrupt?.(stray);
  });
  const failed = (error: unknown): Failure => sourceFailure(pipeline.name, key, error);
  try {
    iterator = reading.run(() => {
      const rows = pipeline.rows({ key, window: { start, end, date, endDate }, signal });
      return Symbol.asyncIterator in rows ? rows[Symbol.asyncIterator]() : rows[Symbol.iterator]();
    });
  } catch (error) {
    reading.end();
    throw failed(error);
  }
  return {
    async next() {
      signal.throwIfAborted();
      const step = await new Promise<IteratorResult<Row>>((resolve, reject) => {
        interrupt = reject;
        // An async function, so that a source that throws at once rejects like one that throws later.
        reading
          .run(async () => iterator.next())
          .then(resolve, (error: unknown) => {
            reject(signal.aborted ? (signal.reason as Error) : failed(error));
          });
      });
      if (stray) throw stray;
      if (step.done) return undefined;
      if (typeof step.value !== 'object' || step.value === null || Array.isArray(step.value)) {
        throw new Failure(
          'DataError',
          `rows() of ${pipeline.name} yielded ${step.value === null ? 'null' : Array.isArray(step.value) ? 'an array' : `a ${typeof step.value}`}: expected an object with a key a column.`,
        );
      }
      return step.value;
    },
    abandon() {
      void reading.run(async () => iterator.return?.()).catch(() => undefined);
    },
    end: () => reading.end(),
  };
}

function sourceFailure(pipeline: string, key: string, error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure(
    'SourceFailed',
    `rows() of ${pipeline} threw ${thrown(error)} for ${key}. The old rows stand. Throw SourceError to have its message shown here.`,
  );
}

function strayFailure(pipeline: string, key: string, error: unknown): Failure {
  return new Failure(
    'SourceFailed',
    `The code of ${pipeline} threw ${thrown(error)}, an error outside what rows() awaits, for ${key}. The old rows stand. ` +
      'Await every promise, and catch what callbacks, such as those of timers and events, may throw.',
  );
}

/** The class and the code of what the source threw. Its message only where the source vouches for it by `SourceError`: any other may hold rows. */
function thrown(error: unknown): string {
  const name = error instanceof Error ? errorClass(error) : typeof error;
  const message = error instanceof Error && error.name === 'SourceError' ? `: ${error.message}` : '';
  const code = codeOf(error) ?? codeOf(error instanceof Error ? error.cause : undefined);
  return `${name}${code ? ` (${code})` : ''}${message}`;
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' && /^[A-Z0-9_]{1,40}$/.test(error.code) ? error.code : undefined;
}
