import type { TypeScriptPipeline } from '../pipeline/pipeline.js';
import type { FillRequest } from './fill-request.js';
import { SourceText } from './source-text.js';
import { Spool } from './spool.js';
import type { Target } from './target.js';

/** A TypeScript pipeline's rows for one window, written down. The caller closes the spool. */
export interface SpooledRows {
  readonly spool: Spool;
  readonly rows: number;
  /** The columns written, in COPY's order; the partition column alone where no row came. */
  readonly columns: readonly string[];
}

/** Bytes that go to the disk at a time. */
const CHUNK = 1 << 18;

/**
 * Runs the pipeline's own code to its end and spools what it yields, at constant memory: it is asked for more rows only once
 * those before are written. No connection is held meanwhile. `request.signal` ends it.
 *
 * Throws what {@link SourceText} throws, and `Unexpected` where the worker's disk says no.
 */
export async function spoolRows(
  pipeline: TypeScriptPipeline,
  request: FillRequest,
  target: Target,
  spoolDir: string | undefined,
): Promise<SpooledRows> {
  const spool = await Spool.create(spoolDir);
  let source: SourceText | undefined;
  try {
    source = new SourceText(pipeline, request, target, { step: 'spool', chunk: CHUNK });
    for (let text = await source.next(); text !== undefined; text = await source.next()) await spool.write(text);
    return { spool, rows: source.rows, columns: source.columns };
  } catch (error) {
    await spool.close();
    throw error;
  } finally {
    source?.end();
  }
}
