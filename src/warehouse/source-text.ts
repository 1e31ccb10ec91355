import type { TypeScriptPipeline } from '../pipeline/pipeline.js';
import type { FillRequest, FillStep } from './fill-request.js';
import { openRows, type RowIterator } from './row-iterator.js';
import { RowLines } from './row-lines.js';
import { SourceBeingRead } from './source-being-read.js';
import { sourceFailure, strayFailure } from './rows-failure.js';
import type { Target } from './target.js';
import { Turn } from './turn.js';

/** Milliseconds between two words on the rows so far: a heartbeat goes out each second. */
const TELL_MS = 500;
/** Bytes by which the last row may pass what is handed over at a time, without more being asked of the system. */
const ROOM = 1 << 14;

export interface SourceTextOptions {
  /** The fill's step while its source is read. */
  readonly step: FillStep;
  /** Bytes handed over at a time, about. */
  readonly chunk: number;
}

/**
 * A TypeScript pipeline's rows for one window as COPY's text, at constant memory: its code is asked for rows only while text
 * is waited for.
 *
 * Reading throws `SourceFailed` where the code throws, `SchemaMismatch` for a row that does not fit the columns, `DataError`
 * for a value that cannot be stored; and rejects with the signal's reason, without waiting for the code, once that is aborted.
 */
export class SourceText {
  readonly #pipeline: TypeScriptPipeline;
  readonly #request: FillRequest;
  readonly #chunk: number;
  readonly #lines: RowLines;
  readonly #reading: SourceBeingRead;
  readonly #onAbort = (): void => this.#stop(this.#request.signal.reason as Error);
  readonly #telling: NodeJS.Timeout;
  readonly #tell: () => void;
  #rows: RowIterator | undefined;
  #done = false;
  /** Why nobody waits for the code any more. */
  #stopped: Error | undefined;
  #interrupt: ((reason: Error) => void) | undefined;

  /** Runs none of the pipeline's code yet. `end` must follow. Throws `SchemaMismatch` where the target has not its `columns`. */
  constructor(pipeline: TypeScriptPipeline, request: FillRequest, target: Target, options: SourceTextOptions) {
    this.#pipeline = pipeline;
    this.#request = request;
    this.#chunk = options.chunk;
    this.#lines = new RowLines(pipeline, target, options.chunk + ROOM);
    this.#reading = new SourceBeingRead((error) => {
      this.#stop(strayFailure(pipeline.name, request.window.key, error));
    });
    this.#tell = () => request.onStep?.(options.step, this.rows);
    this.#telling = setInterval(this.#tell, TELL_MS);
    this.#telling.unref();
    request.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Rows taken so far. */
  get rows(): number {
    return this.#lines.rows;
  }

  /** The columns written, in COPY's order; the partition column alone where no row came. */
  get columns(): readonly string[] {
    return this.#lines.columns ?? [this.#pipeline.partition.column];
  }

  /** Reads the first row, so that the columns are known, and keeps it. False where there is none. */
  async first(): Promise<boolean> {
    await this.#untilStopped(() => this.#read(1));
    return this.rows > 0;
  }

  /** The next whole lines; undefined at the end. One call at a time. */
  async next(): Promise<Buffer | undefined> {
    await this.#untilStopped(() => this.#read(this.#chunk));
    return this.#lines.length === 0 ? undefined : this.#lines.take();
  }

  /**
   * Nobody reads on: from here on no error of the code fails the fill. Code that has not come to its end is told so, and not
   * waited for.
   */
  end(): void {
    clearInterval(this.#telling);
    this.#request.signal.removeEventListener('abort', this.#onAbort);
    if (!this.#done) this.#abandon();
    this.#reading.end();
  }

  #abandon(): void {
    this.#stop(new Error('The source was left'));
    void this.#reading.run(async () => this.#rows?.iterator.return?.()).catch(() => undefined);
  }

  #stop(reason: Error): void {
    this.#stopped ??= reason;
    this.#interrupt?.(this.#stopped);
  }

  /** As `read` ends, or rejects as soon as nobody waits for the code any more: one promise for many rows. */
  #untilStopped(read: () => Promise<void>): Promise<void> {
    const { signal } = this.#request;
    if (signal.aborted) this.#onAbort();
    return new Promise<void>((resolve, reject) => {
      if (this.#stopped) {
        reject(this.#stopped);
        return;
      }
      this.#interrupt = reject;
      // Whatever the code starts, such as a timer, is known to be its own.
      this.#reading.run(read).then(resolve, (error: unknown) => {
        reject(this.#stopped ?? sourceFailure(this.#pipeline.name, this.#request.window.key, error));
      });
    });
  }

  /** Takes rows until so many bytes are there, or the end. */
  async #read(length: number): Promise<void> {
    const rows = (this.#rows ??= this.#open());
    const lines = this.#lines;
    const turn = new Turn();
    while (!this.#done && lines.length < length) {
      // Awaiting what is no promise would cost more than the row does.
      const step: IteratorResult<unknown, unknown> = rows.isAsync ? await rows.iterator.next() : rows.iterator.next();
      if (this.#stopped) throw this.#stopped;
      if (step.done) {
        this.#done = true;
        return;
      }
      lines.add(step.value);
      if (lines.rows % 1000 === 0) this.#tell();
      if (turn.isOver()) await turn.next();
    }
  }

  #open(): RowIterator {
    const { window, signal } = this.#request;
    const { key, start, end, date, endDate } = window;
    return openRows(this.#pipeline, { key, window: { start, end, date, endDate }, signal });
  }
}
