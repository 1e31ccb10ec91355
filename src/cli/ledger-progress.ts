import type { Progress } from '../contract.js';
import type { Settings } from '../settings.js';
import { type BackfillProgress, backfillProgress } from '../warehouse/backfill-progress.js';
import { type BackfillRow, readBackfills } from '../warehouse/backfills.js';
import { withDatabaseAt } from './database.js';
import { ledgerUrls } from './ledgers.js';

/** Asks a ledger how far a backfill is. Undefined where none is at hand, none answers, or it does not know the backfill yet. */
export type AskLedger = () => Promise<Progress | undefined>;

/**
 * What the ledgers of a project say of the newest run of a backfill, for where no worker answers. Nothing is opened before the
 * first question, and nothing stays open after one.
 */
export function ledgerOf(settings: Settings, id: string): AskLedger {
  let found: string | undefined;
  const ask = async (url: string): Promise<Progress | undefined> =>
    withDatabaseAt(url, async (database) => {
      const [row] = await readBackfills(database, { id, limit: 1 });
      const progress = row && (await backfillProgress(database, row.run));
      return row && progress && progressByLedger(row, progress);
    });
  return async () => {
    try {
      for (const url of found === undefined ? await ledgerUrls(settings) : [found]) {
        // One that is away, or has no ledger, hides no other.
        const progress = await ask(url).catch(() => undefined);
        if (progress) found = url;
        if (progress) return progress;
      }
    } catch {
      // A follower may have no database at hand: the run itself needs none of it.
    }
    return undefined;
  };
}

/** A run's row and what it has come to, in the words of `progress`: what runs, and what waits, the ledger does not know. */
export function progressByLedger(row: BackfillRow, seen: BackfillProgress): Progress {
  const { pipeline, total, skipped, outcome } = row;
  const { paused, stopping, concurrency, failures, rows } = seen;
  // An older version's fills do not say which backfill they are part of.
  const [filled, failed] = [
    Math.max(row.filled, seen.filled),
    Math.max(outcome === null ? 0 : row.failed, seen.failed),
  ];
  return {
    pipeline,
    ...spanOf(row.input),
    total,
    filled,
    failed,
    skipped,
    rows: Math.max(row.rows, rows),
    running: [],
    failures: failures.map(({ key, type, message }) => ({ key, type, message })),
    phase: outcome !== null ? 'ended' : paused ? 'paused' : stopping ? 'stopping' : 'filling',
    ...(concurrency !== null && { concurrency }),
    ...(paused && outcome === null && { paused }),
  };
}

/** First and last key, where the input names them. */
function spanOf(input: unknown): Pick<Progress, 'first' | 'last'> {
  const { from, to, only } = (input ?? {}) as { from?: unknown; to?: unknown; only?: unknown };
  // Of a selection by state, the list begins and ends where the plan says.
  return typeof from === 'string' && typeof to === 'string' && only === undefined ? { first: from, last: to } : {};
}
