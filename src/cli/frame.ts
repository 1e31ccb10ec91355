import { ago, duration, instant, number, span } from './format.js';
import type { Colors } from './output.js';
import { flow, lineOf, type Piece } from './pieces.js';
import { bar, legend } from './progress-bar.js';
import {
  figuresOf,
  listAllFailed,
  notReadyText,
  pausedText,
  PHASE_WORDS,
  shareOf,
  UNANSWERED,
} from './progress-words.js';
import { type Sight, waitsFor } from './sight.js';
import { cutMiddle, oneLine, pad, widthOf } from './width.js';

export interface FrameOptions {
  /** Columns of the terminal; no line is longer. */
  readonly columns: number;
  /** Lines that there is room for; there are no more. */
  readonly rows: number;
  readonly colors: Colors;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Columns of a bar: at least, for it to say something, and at most. */
const BAR = { least: 10, most: 100 };

/**
 * The live view of a backfill as text: one bar for the whole, how it stands and what to do, what runs now, the first failures.
 * It fits the room it is given; what there is no room for is counted.
 */
export function frame(sight: Sight, options: FrameOptions): string {
  const { columns, colors, rows } = options;
  const head = [
    ...title(sight, columns, colors),
    ...barLines(sight, columns, colors),
    ...states(sight, options),
    ...flow(legend(sight.progress, colors), columns, '  '),
    ...flow(
      figuresOf(sight.progress).map((text) => ({ text })),
      columns,
      ' · ',
    ),
  ];
  const room = Math.max(0, rows - head.length);
  const runs = running(sight, options);
  const fails = failures(sight, options);
  // Each has half, and what the other leaves.
  const half = Math.floor(room / 2);
  const forFails = Math.min(fails.length, Math.max(half, room - runs.length));
  const shown = [...runs.lines(room - forFails), ...fails.lines(forFails)];
  return [...head, ...shown].slice(0, rows).join('\n');
}

/** The same on one line, for a pipe. */
export function line({ progress, unanswered }: Sight): string {
  const { phase, paused, failed, skipped, waiting, busy, downstream, running: children } = progress;
  const counts: readonly (readonly [number | undefined, string])[] = [
    [failed, 'failed'],
    [skipped, 'skipped'],
    [children.length, 'running'],
    [waiting, 'not ready'],
    [busy, 'busy'],
  ];
  const notReady = notReadyText(progress);
  const parts = [
    ...(phase === 'planning' ? [] : shareOf(progress)),
    ...counts.flatMap(([count, word]) => (count ? [`${number(count)} ${word}`] : [])),
    ...figuresOf(progress),
    ...(paused ? [pausedText(paused, `at ${instant(paused.since)}`)] : []),
    ...(phase === 'filling' || phase === 'paused' ? [] : [PHASE_WORDS[phase]]),
    ...(downstream === undefined ? [] : [`then ${downstream}`]),
    ...(unanswered ? [UNANSWERED[unanswered]] : []),
    ...(notReady === undefined ? [] : [notReady]),
  ];
  return `${`${progress.pipeline} ${span(progress.first, progress.last)}`.trimEnd()}: ${parts.join(' · ')}`;
}

/** Name and range: on a line of its own each where one has no room for both. */
function title({ progress }: Sight, columns: number, { bold }: Colors): string[] {
  const range = span(progress.first, progress.last);
  const beside = columns - widthOf(range) - 2;
  const name = (room: number): Piece => ({ text: cutMiddle(progress.pipeline, room), paint: bold });
  if (range === '') return [lineOf([name(columns)], columns)];
  // A name that keeps but a few letters says nothing.
  if (beside >= Math.min(20, widthOf(progress.pipeline))) {
    return [lineOf([name(beside), { text: `  ${range}` }], columns)];
  }
  return [lineOf([name(columns)], columns), lineOf([{ text: range }], columns)];
}

/** Bar and share: one below the other where a line has no room for both. */
function barLines({ progress }: Sight, columns: number, colors: Colors): string[] {
  const share = progress.phase === 'planning' ? '' : shareOf(progress).join('  ');
  const beside = columns - widthOf(share) - 2;
  if (beside >= BAR.least) return [`${bar(progress, Math.min(BAR.most, beside), colors)}  ${share}`.trimEnd()];
  return [bar(progress, columns, colors), lineOf([{ text: share }], columns)];
}

/** What is not as usual, and what to do about it. */
function states({ progress, id, attempts = [], unanswered }: Sight, { columns, colors, now }: FrameOptions): string[] {
  const { phase, paused, downstream } = progress;
  const lines: Piece[][] = [];
  if (paused) {
    lines.push([
      { text: '‖ ', paint: colors.yellow },
      { text: pausedText(paused, ago(paused.since, now)), paint: colors.yellow },
    ]);
    if (id !== undefined) lines.push(advice('  go on: ', 'resume', { id, progress }, columns));
  }
  if (phase !== 'filling' && phase !== 'paused') lines.push([{ text: `◦ ${PHASE_WORDS[phase]}` }]);
  if (downstream !== undefined) lines.push([{ text: `◦ then what depends on it: ${downstream}` }]);
  const notReady = notReadyText(progress);
  if (notReady !== undefined) lines.push([{ text: `○ ${notReady}`, paint: colors.yellow }]);
  if (unanswered) lines.push([{ text: `! ${UNANSWERED[unanswered]}`, paint: colors.yellow }]);
  for (const own of attempts) {
    const waits = own.keys === undefined ? waitsFor(own) : undefined;
    if (waits !== undefined) lines.push([{ text: `! it waits: ${oneLine(waits)}`, paint: colors.yellow }]);
  }
  return lines.map((pieces) => lineOf(pieces, columns));
}

/** A command for this backfill: by its pipeline where its id has no room, and cut where that has none either. */
function advice(
  before: string,
  name: string,
  { id, progress }: Pick<Sight, 'id' | 'progress'>,
  columns: number,
): Piece[] {
  const room = columns - widthOf(`${before}repave ${name} `);
  const names = [id ?? progress.pipeline, progress.pipeline];
  const fitting = names.find((text) => widthOf(text) <= room) ?? cutMiddle(names[0] ?? '', Math.max(1, room));
  return [{ text: `${before}repave ${name} ${fitting}` }];
}

/** Lines of which only some may have room. */
interface Listing {
  /** Lines that all of it takes. */
  readonly length: number;
  /** As many lines, the last of which counts what is left out. */
  lines(room: number): string[];
}

function listing(lines: readonly string[], inAll: number, more: (hidden: number) => string): Listing {
  const length = lines.length + (inAll > lines.length ? 1 : 0);
  return {
    length,
    lines(room) {
      if (room >= length && inAll === lines.length) return [...lines];
      const shown = Math.max(0, Math.min(lines.length, room - 1));
      return room < 1 || inAll === 0 ? [] : [...lines.slice(0, shown), more(inAll - shown)];
    },
  };
}

function running({ progress, attempts = [] }: Sight, { columns, colors, now }: FrameOptions): Listing {
  const children = progress.running.map(({ keys, since }) => {
    return { keys, lasts: duration(Math.max(0, Math.round((now - Date.parse(since)) / 1000))) };
  });
  const widest = (texts: readonly string[]): number => Math.max(0, ...texts.map(widthOf));
  const [keysWidth, lastsWidth] = [
    widest(children.map(({ keys }) => keys)),
    widest(children.map(({ lasts }) => lasts)),
  ];
  const lines = children.map(({ keys, lasts }) => {
    const attempt = attempts.find((one) => one.keys === keys);
    const waits = attempt && waitsFor(attempt);
    return lineOf(
      [
        { text: '▓ ', paint: colors.magenta },
        { text: pad(keys, keysWidth) },
        { text: `  ${lasts.padStart(lastsWidth)}`, paint: colors.dim },
        ...(attempt ? [{ text: `  attempt ${number(attempt.attempt)}` }] : []),
        ...(waits === undefined ? [] : [{ text: `  waits: ${oneLine(waits)}`, paint: colors.yellow }]),
      ],
      columns,
    );
  });
  return listing(lines, lines.length, (hidden) =>
    lineOf(
      [{ text: hidden === lines.length ? `▓ ${number(hidden)} running` : `  and ${number(hidden)} more` }],
      columns,
    ),
  );
}

function failures({ progress }: Sight, { columns, colors }: FrameOptions): Listing {
  const lines = progress.failures.map(({ key, type, message }) =>
    lineOf([{ text: '× ', paint: colors.red }, { text: `${key}  ${type}: ${oneLine(message)}` }], columns),
  );
  return listing(lines, progress.failed, (hidden) => {
    const text = hidden === progress.failed ? `× ${number(hidden)} failed: ` : `  and ${number(hidden)} more: `;
    // The ledger has them all; a frame has the first.
    const room = Math.max(1, columns - widthOf(text));
    return lineOf([{ text: `${text}${cutMiddle(listAllFailed(progress.pipeline), room)}` }], columns);
  });
}
