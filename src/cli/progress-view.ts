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
 * A view on standard error: live on a terminal, plain lines at most every ten seconds elsewhere. Each failure is written
 * once, above, and stays.
 */
export function progressView(output: Output, stream: NodeJS.WriteStream = process.stderr): ProgressView {
  const told = new Set<string>();
  const meter = new PaceMeter();
  const newFailures = (progress: Progress): string[] =>
    progress.failures
      .filter(({ key }) => !told.has(key))
      .map(({ key, type, message }) => {
        told.add(key);
        return `${output.errorColors.red('✗')} ${key}  ${type}: ${message}`;
      });
  const live = stream.isTTY === true && !output.json;
  const view = live ? liveView(output, stream, meter, newFailures) : plainView(output, meter, newFailures);
  return { ...view, told };
}

type NewFailures = (progress: Progress) => string[];

function liveView(
  output: Output,
  stream: NodeJS.WriteStream,
  meter: PaceMeter,
  newFailures: NewFailures,
): Omit<ProgressView, 'told'> {
  const update = createLogUpdate(stream);
  return {
    show(progress) {
      const pace = meter.see(progress, Date.now());
      const failures = newFailures(progress);
      if (failures.length > 0) update.persist(failures.join('\n'));
      update(frame(progress, pace, { columns: stream.columns || output.columns, colors: output.errorColors }));
    },
    end() {
      update.clear();
      update.done();
    },
  };
}

function plainView(output: Output, meter: PaceMeter, newFailures: NewFailures): Omit<ProgressView, 'told'> {
  let last = -Infinity;
  return {
    show(progress) {
      const now = Date.now();
      const pace = meter.see(progress, now);
      for (const failure of newFailures(progress)) output.say(failure);
      if (now - last < LINE_EVERY_MS) return;
      last = now;
      output.say(line(progress, pace));
    },
    end() {
      // Lines stay where they are.
    },
  };
}
