import type { Progress } from '../contract.js';
import { cut, duration, number, span } from './format.js';
import type { Colors } from './output.js';

/** Partitions a second, by what was seen; undefined until there is something to go by. */
export interface Pace {
  readonly perSecond: number | undefined;
}

export interface FrameOptions {
  /** Columns of the terminal; no line is longer. */
  readonly columns: number;
  readonly colors: Colors;
  /** Running partitions to name. */
  readonly rows?: number;
}

const RUNNING_ROWS = 8;
const BAR = 32;

/** The live view of a backfill as text: one bar for the whole, what runs now, how long it will take. */
export function frame(progress: Progress, pace: Pace, options: FrameOptions): string {
  const { colors, columns } = options;
  const lines = [
    cut(`${progress.pipeline}  ${span(progress.first, progress.last)}`.trimEnd(), columns),
    barLine(progress, columns, colors),
    cut(counts(progress, pace), columns),
  ];
  const shown = progress.running.slice(0, options.rows ?? RUNNING_ROWS);
  const hidden = progress.running.length - shown.length;
  if (shown.length > 0) {
    lines.push(colors.dim(cut(`filling ${shown.join(', ')}${hidden > 0 ? ` and ${hidden} more` : ''}`, columns)));
  }
  return lines.join('\n');
}

/** The same on one line, for a pipe. */
export function line(progress: Progress, pace: Pace): string {
  return `${`${progress.pipeline} ${span(progress.first, progress.last)}`.trimEnd()}: ${counts(progress, pace)}`;
}

function counts(progress: Progress, pace: Pace): string {
  const done = progress.filled + progress.failed + progress.skipped;
  const parts =
    progress.phase === 'planning'
      ? ['planning']
      : [
          `${number(done)} of ${number(progress.total)}`,
          progress.failed > 0 ? `${number(progress.failed)} failed` : '',
          progress.skipped > 0 ? `${number(progress.skipped)} skipped` : '',
          `${number(progress.rows)} rows`,
          rate(pace),
          left(progress.total - done, pace),
          progress.phase === 'ended' ? 'ended' : '',
        ];
  return parts.filter((part) => part !== '').join(' · ');
}

function rate({ perSecond }: Pace): string {
  if (perSecond === undefined || perSecond <= 0) return '';
  return perSecond >= 1 ? `${perSecond.toFixed(1)}/s` : `${(perSecond * 60).toFixed(1)}/min`;
}

function left(remaining: number, { perSecond }: Pace): string {
  if (perSecond === undefined || perSecond <= 0 || remaining <= 0) return '';
  return `about ${duration(Math.max(1, Math.round(remaining / perSecond)))} left`;
}

function percent(progress: Progress): string {
  if (progress.total === 0) return '';
  const done = progress.filled + progress.failed + progress.skipped;
  return `${Math.floor((100 * done) / progress.total)} %`;
}

/** Bar and share; the share alone where the terminal is too narrow for both. */
function barLine(progress: Progress, columns: number, colors: Colors): string {
  const share = percent(progress);
  const width = Math.min(BAR, columns - '  100 %'.length);
  return width < 1 ? cut(share, columns) : `${bar(progress, width, colors)}  ${share}`.trimEnd();
}

/** Filled, failed and the rest, by shape as well as by colour. Any failure shows, however small its share. */
function bar(progress: Progress, width: number, colors: Colors): string {
  if (progress.total === 0) return colors.dim('·'.repeat(width));
  const share = (count: number) => Math.floor((width * count) / progress.total);
  const failed = progress.failed > 0 ? Math.max(1, share(progress.failed)) : 0;
  const filled = Math.min(width - failed, share(progress.filled + progress.skipped));
  return `${colors.blue('█'.repeat(filled))}${colors.red('×'.repeat(failed))}${colors.dim('·'.repeat(width - filled - failed))}`;
}

/** Seen progress, from which the pace is told: over the last minute, so that it follows a change of speed. */
export class PaceMeter {
  readonly #seen: { at: number; done: number }[] = [];

  /** `at` in milliseconds. */
  see(progress: Progress, at: number): Pace {
    const done = progress.filled + progress.failed + progress.skipped;
    this.#seen.push({ at, done });
    while (this.#seen.length > 2 && at - (this.#seen[0]?.at ?? at) > 60_000) this.#seen.shift();
    const first = this.#seen[0];
    if (!first || at - first.at < 1_000 || done === first.done) return { perSecond: undefined };
    return { perSecond: ((done - first.done) * 1_000) / (at - first.at) };
  }
}
