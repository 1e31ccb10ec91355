import picocolors from 'picocolors';
import { frame, line } from '../../src/cli/frame.js';
import type { Attempt } from '../../src/client.js';
import type { Sight } from '../../src/cli/sight.js';
import type { PartitionFailure, Progress, RunningChild } from '../../src/contract.js';

/** Backfills as they are seen, and what the command shows of them: golden files in test/fixtures/frames, captures in docs. */

const NOW = Date.parse('2026-11-29T14:02:11Z');
const ID = 'backfill/sales_summary/1997-01-01..1997-12-31';

function ago(seconds: number): string {
  return new Date(NOW - seconds * 1000).toISOString();
}

const MESSAGES = [
  ['CheckFailed', 'rows (min 1): 0 rows. The old rows (1,204) stand. Mend the source, then fill it again.'],
  ['SchemaMismatch', 'The query has no column "revenue", which sales_summary needs.'],
  ['SourceFailed', 'The API answered 503 three times:\n\u001b[31m日本語のエラー\u001b[0m 🚫 try later'],
] as const;

/** The first failures, as many as `progress` lists. */
function failures(count: number): PartitionFailure[] {
  return Array.from({ length: Math.min(count, 10) }, (_, index) => {
    const [type, message] = MESSAGES[index % MESSAGES.length]!;
    return { key: `1997-02-${String(index + 1).padStart(2, '0')}`, type, message };
  });
}

function children(count: number): RunningChild[] {
  return Array.from({ length: count }, (_, index) => {
    return { keys: `1997-06-${String(index + 1).padStart(2, '0')}`, since: ago(3 + index * 31) };
  });
}

function attempt(keys: string, number: number, seconds: number): Attempt {
  return { keys, activity: 'fillPartition', attempt: number, state: 'running', since: ago(seconds) };
}

function waiting(keys: string, number: number, type: string, message: string): Attempt {
  return { ...attempt(keys, number, 5), state: 'waiting', failure: { type, message } };
}

function filling(failed: number, more: Partial<Progress> = {}): Sight {
  const progress: Progress = {
    pipeline: 'sales_summary',
    first: '1997-01-01',
    last: '1997-12-31',
    total: 365,
    filled: 151 - failed,
    failed,
    skipped: 2,
    rows: 181_204,
    running: children(4),
    waiting: 3,
    busy: 2,
    failures: failures(failed),
    phase: 'filling',
    concurrency: 4,
    perMinute: 31.2,
    secondsLeft: 408,
    ...more,
  };
  return { progress, id: ID, attempts: [attempt('1997-06-01', 1, 3)] };
}

/** One child on its second attempt, one that waits for its third. */
function withAttempts(sight: Sight): Sight {
  return {
    ...sight,
    attempts: [
      attempt('1997-06-01', 1, 3),
      attempt('1997-06-02', 2, 4),
      waiting('1997-06-03', 3, 'Conflict', 'The window of sales_summary 1997-06-03 is held by run 1b4e28ba (pid 71).'),
    ],
  };
}

const LONG_NAME = `finance/${'quarterly_revenue_by_region_'.repeat(3)}`.slice(0, 90);

const STARTING = filling(0, {
  filled: 0,
  skipped: 0,
  rows: 0,
  waiting: undefined,
  busy: undefined,
  perMinute: undefined,
  secondsLeft: undefined,
});

const PAUSED_BY_FAILURES = filling(3, {
  phase: 'paused',
  running: children(1),
  waiting: undefined,
  busy: undefined,
  paused: { by: 'failures', reason: '3 partitions have failed, the last as CheckFailed', since: ago(260) },
});

const NO_WORKER: Sight = {
  ...filling(0, {
    waiting: undefined,
    busy: undefined,
    running: children(2),
    perMinute: undefined,
    secondsLeft: undefined,
  }),
  attempts: ['1997-06-01', '1997-06-02'].map((keys) => waiting(keys, 2, 'TimedOut', 'Its worker was lost.')),
  unanswered: 'no worker polls',
};

const SIGHTS: Readonly<Record<string, Sight>> = {
  planning: {
    id: ID,
    progress: { ...STARTING.progress, first: undefined, last: undefined, total: 0, running: [], phase: 'planning' },
  },
  starting: STARTING,
  'no-failures': withAttempts(filling(0)),
  '3-failures': filling(3),
  '50-failures': filling(50),
  'long-name': (() => {
    const sight = filling(3, { pipeline: LONG_NAME });
    return { ...sight, id: `backfill/${LONG_NAME}/1997-01-01..1997-12-31` };
  })(),
  '100-at-once': filling(50, { running: children(100), concurrency: 100 }),
  'paused-by-failures': PAUSED_BY_FAILURES,
  'paused-by-a-person': filling(0, {
    phase: 'paused',
    running: [],
    paused: { by: 'lever', reason: 'replication lags — 返信が遅れています', since: ago(4000) },
  }),
  stopping: filling(0, { phase: 'stopping' }),
  draining: filling(0, { phase: 'draining' }),
  'no-worker': NO_WORKER,
  'one-failed-of-very-many': filling(1, { total: 100_000, filled: 99_998, skipped: 0, running: [], phase: 'ended' }),
};

/** Rooms in which every sight is drawn. Colours are ANSI's own escapes, so that `cat` shows them. */
const ROOMS = {
  'at-80x24': { columns: 80, rows: 23, colors: picocolors.createColors(true) },
  'at-200x50': { columns: 200, rows: 49, colors: picocolors.createColors(true) },
  'without-colour': { columns: 80, rows: 23, colors: picocolors.createColors(false) },
  'at-20x10': { columns: 20, rows: 9, colors: picocolors.createColors(false) },
} as const;

/** Every golden file under test/fixtures/frames, by its name: sights under their headings. */
export function goldenFiles(): Map<string, string> {
  const files = new Map<string, string>();
  const all = (show: (sight: Sight) => string): string =>
    Object.entries(SIGHTS)
      .map(([name, sight]) => `-- ${name}\n${show(sight)}\n`)
      .join('\n');
  for (const [name, room] of Object.entries(ROOMS)) {
    files.set(
      `${name}.txt`,
      all((sight) => frame(sight, { ...room, now: NOW })),
    );
  }
  files.set('in-a-pipe.txt', all(line));
  return files;
}

/** The captures in docs/captures, by their name: the command line, and what is on the screen then. */
export function captures(): Map<string, string> {
  const plain = { columns: 80, rows: 23, colors: picocolors.createColors(false), now: NOW };
  const shown = (sight: Sight): string => `$ repave watch sales_summary\n${frame(sight, plain)}\n`;
  return new Map([
    ['running.txt', shown(withAttempts(filling(3)))],
    ['paused-by-failures.txt', shown(PAUSED_BY_FAILURES)],
    ['no-worker.txt', shown(NO_WORKER)],
  ]);
}

export const sights = SIGHTS;
export const now = NOW;
