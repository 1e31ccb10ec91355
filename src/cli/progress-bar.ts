import type { Progress } from '../contract.js';
import { number } from './format.js';
import type { Colors } from './output.js';
import type { Piece } from './pieces.js';
import { doneOf } from './progress-words.js';

/** A part of the whole: its shape in the bar, its count and its word. */
interface Part {
  readonly shape: string;
  readonly count: number;
  readonly word: string;
  readonly paint: (text: string) => string;
}

/** One bar for the whole, divided by state, by shape as well as by colour. What there is shows, however small its share. */
export function bar(progress: Progress, width: number, colors: Colors): string {
  const { filled, skipped, failed, running, left } = parts(progress, colors);
  if (progress.total === 0) return left.paint(left.shape.repeat(width));
  const runs = Math.min(running.count, left.count);
  const shown = [filled, skipped, failed, { ...running, count: runs }, { ...left, count: left.count - runs }];
  const cells = cellsOf(
    shown.map(({ count }) => count),
    width,
  );
  return shown.map(({ shape, paint }, index) => paint(shape.repeat(cells[index] ?? 0))).join('');
}

/** The counts by state, each with its shape in the bar; then those of what is left that run, or wait behind the others. */
export function legend(progress: Progress, colors: Colors): Piece[] {
  const { filled, failed, skipped, left, running } = parts(progress, colors);
  const waiting = [
    { shape: '○', count: progress.waiting ?? 0, word: 'not ready', paint: colors.yellow },
    { shape: '◇', count: progress.busy ?? 0, word: 'busy', paint: colors.yellow },
  ];
  return [filled, failed, skipped, left, running, ...waiting]
    .filter(({ count }) => count > 0)
    .map(({ shape, count, word, paint }) => ({ text: `${shape} ${number(count)} ${word}`, paint }));
}

function parts(
  progress: Progress,
  { blue, red, dim, magenta }: Colors,
): Record<'filled' | 'failed' | 'skipped' | 'running' | 'left', Part> {
  const { filled, failed, skipped, running, total } = progress;
  return {
    filled: { shape: '█', count: filled, word: 'filled', paint: blue },
    failed: { shape: '×', count: failed, word: 'failed', paint: red },
    skipped: { shape: '░', count: skipped, word: 'skipped', paint: dim },
    running: { shape: '▓', count: running.length, word: 'running', paint: magenta },
    left: { shape: '·', count: Math.max(0, total - doneOf(progress)), word: 'left', paint: dim },
  };
}

/** `width` cells shared out by count: one for each that has any, the others to whoever is furthest below its share. */
function cellsOf(counts: readonly number[], width: number): number[] {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const cells = counts.map(() => 0);
  for (let given = 0; given < width; given++) {
    const lacks = counts.map((count, index) => {
      const has = cells[index] ?? 0;
      return count > 0 && has === 0 ? Infinity : (width * count) / total - has;
    });
    const neediest = lacks.indexOf(Math.max(...lacks));
    cells[neediest] = (cells[neediest] ?? 0) + 1;
  }
  return cells;
}
