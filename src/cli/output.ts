import picocolors from 'picocolors';

export type Colors = ReturnType<typeof picocolors.createColors>;

/** What a stream of this process can show. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
  once?(event: 'drain', listener: () => void): unknown;
}

/**
 * Where a command's words go: results to standard output, progress and errors to standard error. With `json` standard
 * output holds JSON alone.
 */
export interface Output {
  readonly json: boolean;
  /** Standard output is a terminal: people read it. */
  readonly interactive: boolean;
  /** Columns of the terminal; 80 where there is none. */
  readonly columns: number;
  /** Colours for standard output; they add nothing where colour is off. */
  readonly colors: Colors;
  /** The same for standard error. */
  readonly errorColors: Colors;
  /** Writes a result for people: lines to standard output. Nothing with `json`. */
  readonly result: (text: string) => void;
  /** Writes the result for programs: one JSON document with `version` first. Nothing without `json`. */
  readonly document: (value: object) => void;
  /** Writes text to standard output as it is, and resolves when more may come: for a result that is too long to be held. */
  readonly pour: (text: string) => Promise<void>;
  /** Writes a line of progress, advice or warning to standard error. */
  readonly say: (text: string) => void;
}

/** Version of every JSON document the command writes; a new one where a field changes its meaning or goes. */
export const JSON_VERSION = 1;

export interface OutputOptions {
  readonly json?: boolean;
  /** False: no colour, whatever the terminal. */
  readonly color?: boolean;
}

/** An {@link Output} on two streams; the process's own unless others are given. */
export function createOutput(
  options: OutputOptions,
  env: Readonly<Record<string, string | undefined>> = process.env,
  stdout: Screen = process.stdout,
  stderr: Screen = process.stderr,
): Output {
  const json = options.json === true;
  return {
    json,
    interactive: stdout.isTTY === true,
    columns: stdout.columns || stderr.columns || 80,
    colors: picocolors.createColors(hasColor(stdout, options, env)),
    errorColors: picocolors.createColors(hasColor(stderr, options, env)),
    result(text) {
      if (!json) stdout.write(`${text}\n`);
    },
    document(value) {
      if (json) stdout.write(`${JSON.stringify({ version: JSON_VERSION, ...value })}\n`);
    },
    async pour(text) {
      if (stdout.write(text) === false)
        await new Promise<void>((resolve) => stdout.once?.('drain', resolve) ?? resolve());
    },
    say(text) {
      stderr.write(`${text}\n`);
    },
  };
}

/**
 * Whether to colour a stream: a terminal that is not `dumb`, unless `--no-color` or `NO_COLOR`; `FORCE_COLOR` in a pipe too.
 * (picocolors alone would colour pipes wherever `CI` is set.)
 */
export function hasColor(
  stream: Screen,
  options: OutputOptions,
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  if (options.color === false || env.NO_COLOR) return false;
  if (env.FORCE_COLOR && env.FORCE_COLOR !== '0') return true;
  return stream.isTTY === true && env.TERM !== 'dumb';
}
