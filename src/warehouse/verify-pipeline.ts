import type { Window } from '../calendar/calendar.js';
import { KeyError } from '../calendar/key-error.js';
import { keysBetween } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import type { KeySpan } from './partition-states.js';
import { otherGrid } from './registered-grid.js';
import { type Verification, verifyWindows } from './verify.js';

/** All keys of a ledger. */
export const ALL_KEYS: KeySpan = { from: '', to: '~' };

/** Windows compared in one pass, and their rows by the ledger, at most, so that no snapshot is held for long. */
const STRETCH = { windows: 1_000, rows: 5_000_000 } as const;
/** Windows between two that are compared which are counted along in their pass, rather than two passes made. */
const GAP = 30;
/** Keys read from the ledger at once. */
const PAGE = 1_000;

/** What the comparison of a stretch of windows has come to. */
export interface VerifiedStretch extends Verification {
  /** The last key of it. */
  readonly last: string;
}

/**
 * Compares all that the ledger says of a pipeline's partitions in some spans with its target, stretch by stretch, each in
 * snapshots and transactions of its own: see {@link verifyWindows}, which also says what it throws. As many windows are held
 * at once as a stretch has.
 */
export async function* verifyPipeline(
  database: Database,
  {
    pipeline,
    spans,
    dryRun,
    signal,
  }: {
    readonly pipeline: Pipeline;
    /** Without common partitions, in the calendar's order. */
    readonly spans: readonly KeySpan[];
    /** Compare, and record nothing. */
    readonly dryRun: boolean;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<VerifiedStretch> {
  for (const span of spans) {
    for await (const page of heldPages(database, pipeline, span)) {
      for (const windows of stretches(pipeline, page)) {
        signal.throwIfAborted();
        const verified = await verifyWindows(database, { pipeline, windows, dryRun, signal });
        yield { ...verified, last: windows.at(-1)?.key ?? '' };
      }
    }
  }
}

interface HeldPartition {
  readonly key: string;
  readonly rows: number;
  /** Filled by the pipeline as workers have it: the others are not compared, though their rows may be counted along. */
  readonly current: boolean;
}

/** Partitions of a span that hold what was filled, in the calendar's order, page by page. */
async function* heldPages(
  database: Database,
  { name }: Pipeline,
  { from, to }: KeySpan,
): AsyncGenerator<HeldPartition[]> {
  for (let after: string | undefined = undefined; ;) {
    const page: HeldPartition[] = await database.query<HeldPartition>(
      `SELECT p.key, p.rows::pg_catalog.float8 AS rows, p.fingerprint = r.fingerprint AS current
         FROM repave.partition p JOIN repave.pipeline r ON r.name = p.pipeline
        WHERE p.pipeline = $1 AND p.key COLLATE "C" >= $2 AND p.key COLLATE "C" <= $3
          AND ($4::pg_catalog.text IS NULL OR p.key COLLATE "C" > $4)
          AND p.filled_at IS NOT NULL
        ORDER BY p.key COLLATE "C" LIMIT $5`,
      [name, from, to, after ?? null, PAGE],
    );
    yield page;
    if (page.length < PAGE) return;
    after = page.at(-1)?.key;
  }
}

/** The windows of the current ones of some partitions in runs of neighbours, with those of small gaps between them. */
function* stretches(pipeline: Pipeline, held: readonly HeldPartition[]): Generator<Window[]> {
  let first: Window | undefined;
  let last: Window | undefined;
  let rows = 0;
  let between = 0;
  for (const partition of held) {
    if (!partition.current) {
      between += partition.rows;
      continue;
    }
    const window = windowIn(pipeline, partition.key);
    if (
      first &&
      last &&
      (window.number - last.number > GAP ||
        window.number - first.number >= STRETCH.windows ||
        rows + between + partition.rows > STRETCH.rows)
    ) {
      yield windowsBetween(pipeline, first, last);
      first = undefined;
    }
    rows = first ? rows + between + partition.rows : partition.rows;
    between = 0;
    first ??= window;
    last = window;
  }
  if (first && last) yield windowsBetween(pipeline, first, last);
}

/** A key that workers have filled by the pipeline as they have it, and that the file's calendar does not know, is by another. */
function windowIn(pipeline: Pipeline, key: string): Window {
  try {
    return windowOf(pipeline.partition, key);
  } catch (error) {
    throw error instanceof KeyError ? otherGrid(pipeline) : error;
  }
}

function windowsBetween({ partition }: Pipeline, first: Window, last: Window): Window[] {
  return [...keysBetween(partition, first.key, last.key)].map((key) => windowOf(partition, key));
}
