import { createLogUpdate } from 'log-update';
import { frame, line } from './frame.js';
import type { Output } from './output.js';
import type { Sight } from './sight.js';

/** Shows a backfill as it goes. */
export interface ProgressView {
  /** A view that is drawn over and over; else plain lines are written. */
  readonly live: boolean;
  /** Children that it has room to name. */
  readonly room: number;
  show(sight: Sight): void;
  /** Writes a line that stays. */
  say(text: string): void;
  /** Takes a live view off the screen, so that the result stands where it was. */
  end(): void;
}

/** Milliseconds between lines in a pipe. */
const LINE_EVERY_MS = 10_000;

/**
 * A view on standard error: on a terminal a live one, as large as the terminal; elsewhere plain lines, at most one each ten
 * seconds, and none that says what the last one did.
 */
export function progressView(output: Output, stream: NodeJS.WriteStream = process.stderr): ProgressView {
  return stream.isTTY === true && !output.json ? new LiveView(output, stream) : new PlainView(output);
}

class LiveView implements ProgressView {
  readonly live = true;
  readonly #output: Output;
  readonly #stream: NodeJS.WriteStream;
  readonly #update: ReturnType<typeof createLogUpdate>;
  #sight: Sight | undefined;
  #columns: number;
  #lines = 0;

  constructor(output: Output, stream: NodeJS.WriteStream) {
    this.#output = output;
    this.#stream = stream;
    this.#update = createLogUpdate(stream);
    this.#columns = stream.columns;
    stream.on('resize', this.#resized);
  }

  get room(): number {
    return this.#rows;
  }

  show(sight: Sight): void {
    this.#sight = sight;
    const options = { columns: this.#stream.columns || this.#output.columns, rows: this.#rows, now: Date.now() };
    const text = frame(sight, { ...options, colors: this.#output.errorColors });
    const lines = text.split('\n').length;
    // log-update leaves lines that moved up where they were.
    if (lines !== this.#lines) this.#update.clear();
    this.#lines = lines;
    this.#update(text);
  }

  say(text: string): void {
    this.#update.persist(text);
    if (this.#sight) this.show(this.#sight);
  }

  end(): void {
    this.#stream.removeListener('resize', this.#resized);
    this.#sight = undefined;
    this.#update.clear();
    this.#update.done();
  }

  /** The cursor's own line is not drawn on: the terminal would scroll. */
  get #rows(): number {
    return Math.max(1, (this.#stream.rows || 24) - 1);
  }

  readonly #resized = (): void => {
    // A narrower terminal has broken the lines that stood there, so that nobody knows how many they are now.
    if (this.#stream.columns < this.#columns) {
      this.#update.done();
      this.#stream.write('\u001b[2J\u001b[H');
    }
    this.#columns = this.#stream.columns;
    if (this.#sight) this.show(this.#sight);
  };
}

class PlainView implements ProgressView {
  readonly live = false;
  readonly room = 0;
  readonly #output: Output;
  #last = -Infinity;
  #said = '';

  constructor(output: Output) {
    this.#output = output;
  }

  show(sight: Sight): void {
    if (Date.now() - this.#last < LINE_EVERY_MS) return;
    const text = line(sight);
    // One that waits for hours says so once.
    if (text === this.#said) return;
    this.#last = Date.now();
    this.#said = text;
    this.#output.say(text);
  }

  say(text: string): void {
    this.#output.say(text);
  }

  end(): void {
    // Lines stay where they are.
  }
}
