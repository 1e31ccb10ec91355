import type { Grid, Window } from '../calendar/calendar.js';
import { KeyError } from '../calendar/key-error.js';
import { windowOf } from '../calendar/window.js';
import type { Database } from './database.js';

/** Keys read at once; more only where the ledger's newest ones are of a calendar that the pipeline had. */
const PAGE = 100;

/**
 * The newest partition that holds what a fill left there once it was over, by today's query or an older one, and whose last
 * outcome that was; undefined where there is none from `start` on.
 */
export async function newestFilled(
  database: Database,
  pipeline: string,
  grid: Grid,
  start: string | null,
): Promise<Window | undefined> {
  for (let before: string | undefined = undefined; ;) {
    const page: { readonly key: string }[] = await database.query<{ key: string }>(
      `SELECT key FROM repave.partition
        WHERE pipeline = $1 AND outcome = 'filled' AND filled_at IS NOT NULL AND fingerprint NOT LIKE '% unfinished'
          AND ($2::pg_catalog.text IS NULL OR key COLLATE "C" >= $2) AND ($3::pg_catalog.text IS NULL OR key COLLATE "C" < $3)
        ORDER BY key COLLATE "C" DESC LIMIT $4`,
      [pipeline, start, before ?? null, PAGE],
    );
    for (const { key } of page) {
      const window = windowIn(grid, key);
      if (window) return window;
    }
    if (page.length < PAGE) return undefined;
    before = page.at(-1)?.key;
  }
}

/** Undefined for a key of another calendar. */
function windowIn(grid: Grid, key: string): Window | undefined {
  try {
    return windowOf(grid, key);
  } catch (error) {
    if (error instanceof KeyError) return undefined;
    throw error;
  }
}
