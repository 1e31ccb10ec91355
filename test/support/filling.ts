import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./filling-process.ts', import.meta.url));

export interface FillingOptions {
  readonly url: string;
  /** Rows of each fill, one after the other. */
  readonly rows: readonly number[];
  /** Characters of each row's text. Default 500. */
  readonly width?: number;
  readonly spoolDir?: string;
  /** The source gives its rows and then stalls for ever. */
  readonly stalls?: boolean;
  /** Rows go straight into the transaction: `stage: false`. */
  readonly straight?: boolean;
  /** Megabytes of heap. */
  readonly heap?: number;
}

/** A process that fills the partition of `KEY` from a TypeScript source: to be killed, and to have its memory measured. */
export interface FillingProcess {
  readonly process: ChildProcess;
  readonly pid: number;
  /** The next line that it says; fails where that is another than expected, or there is none. */
  line(expected: RegExp): Promise<RegExpExecArray>;
}

export function startFilling(options: FillingOptions): FillingProcess {
  const flags = options.heap === undefined ? [] : [`--max-old-space-size=${options.heap}`];
  const child = spawn(process.execPath, [...flags, '--import', 'tsx', PROGRAM], {
    env: {
      PATH: process.env.PATH,
      FILL_TEST_URL: options.url,
      FILL_TEST_ROWS: options.rows.join(),
      FILL_TEST_WIDTH: String(options.width ?? 500),
      ...(options.spoolDir === undefined ? {} : { FILL_TEST_DIR: options.spoolDir }),
      ...(options.stalls ? { FILL_TEST_STALLS: 'yes' } : {}),
      ...(options.straight ? { FILL_TEST_STRAIGHT: 'yes' } : {}),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  assert.ok(child.pid);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    process: child,
    pid: child.pid,
    line: async (expected) => {
      const next = await lines.next();
      const match = expected.exec(next.done ? '(the process has ended)' : next.value);
      assert.ok(match, `expected ${String(expected)}, and the process said: ${String(next.value)}`);
      return match;
    },
  };
}
