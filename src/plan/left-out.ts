import type { Grid } from '../calendar/calendar.js';
import { nextKey, previousKey } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import type { PlannedPipeline } from './planned-pipeline.js';
import { type Limits, type Span, spanSize } from './selection.js';

/** Spans cut to what may be filled, and what was left out, said to people. */
export interface CutSpans {
  readonly spans: readonly Span[];
  readonly notes: readonly string[];
}

/** Cuts disjoint, sorted spans to the limits. What falls away is counted and said: before the start, unfinished, future. */
export function cutToLimits(
  asked: readonly Span[],
  { partition: grid }: PlannedPipeline,
  { start, newest, current }: Limits,
): CutSpans {
  const before = start === undefined ? [] : overlaps(grid, asked, { to: previousKey(grid, start) });
  const unfinished = current > newest ? overlaps(grid, asked, { from: current, to: current }) : [];
  const future = overlaps(grid, asked, { from: nextKey(grid, current) });
  const notes = [
    said(grid, before, `before the pipeline's start ${start}`),
    said(grid, unfinished, `unfinished until ${windowOf(grid, current).end}`),
    said(grid, future, 'in the future'),
  ];
  return {
    spans: overlaps(grid, asked, { from: start, to: newest }),
    notes: notes.filter((note) => note !== undefined),
  };
}

/** Sorts spans into the calendar's order and joins those that share partitions, so that each partition is in one. */
export function disjointSpans(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const span of spans.toSorted((a, b) => compare(a.from, b.from))) {
    const last = joined.at(-1);
    if (last && span.from <= last.to) joined[joined.length - 1] = { from: last.from, to: later(last.to, span.to) };
    else joined.push(span);
  }
  return joined;
}

function overlaps(grid: Grid, spans: readonly Span[], { from, to }: Partial<Span>): Span[] {
  return spans
    .map((span) => ({
      from: from === undefined ? span.from : later(from, span.from),
      to: to === undefined || span.to < to ? span.to : to,
    }))
    .filter((span) => spanSize(grid, span) > 0);
}

function said(grid: Grid, spans: readonly Span[], reason: string): string | undefined {
  const count = spans.reduce((sum, span) => sum + spanSize(grid, span), 0);
  const [from, to] = [spans[0]?.from, spans.at(-1)?.to];
  if (count === 0) return undefined;
  if (count === 1) return `1 partition is left out: ${from}, which is ${reason}.`;
  return `${count} partitions are left out: from ${from} to ${to}, which are ${reason}.`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function later(a: string, b: string): string {
  return a > b ? a : b;
}
