import { createLogUpdate } from 'log-update';
import type { Progress } from '../contract.js';
import { frame, line, PaceMeter } from './frame.js';
import type { Output } from './output.js';

/** Shows a backfill's progress as it comes. */
export interface ProgressView {
  show(progress: Progress): void;
  /** Takes a live view off the screen, so that the result stands where it was. */
  end(): void;
  /** Keys whose failure it has written. */
  readonly told: ReadonlySet<string>;
}

/** Milliseconds between lines in a pipe. */
const LINE_EVERY_MS = 10_000;

/**
 * A view on standard error: on a terminal a live one, with each failure written once, above, where it stays; elsewhere plain
 * lines at most every ten seconds, which count failures (the result names them).
 */
export function progressView(output: Output, stream: NodeJS.WriteStream = process.stderr): ProgressView {
  const live = stream.isTTY === true && !output.json;
  return live ? liveView(output, stream, new PaceMeter()) : plainView(output, new PaceMeter());
}

function liveView(output: Output, stream: NodeJS.WriteStream, meter: PaceMeter): ProgressView {
  const told = new Set<string>();
  const update = createLogUpdate(stream);
  return {
    told,
    show(progress) {
      const pace = meter.see(progress, Date.now());
      const failures = progress.failures.filter(({ key }) => !told.has(key));
      for (const { key, type, message } of failures) {
        told.add(key);
        update.persist(`${output.errorColors.red('✗')} ${key}  ${type}: ${message}`);
      }
      update(frame(progress, pace, { columns: stream.columns || output.columns, colors: output.errorColors }));
    },
    end() {
      update.clear();
      update.done();
    },
  };
}

function plainView(output: Output, meter: PaceMeter): ProgressView {
  let last = -Infinity;
  return {
    told: new Set(),
    show(progress) {
      const now = Date.now();
      const pace = meter.see(progress, now);
      if (now - last < LINE_EVERY_MS) return;
      last = now;
      output.say(line(progress, pace));
    },
    end() {
      // Lines stay where they are.
    },
  };
}
