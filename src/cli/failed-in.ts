import type { BackfillHandle, RepaveClient } from '../client.js';
import { WORKFLOW_TYPES } from '../contract.js';
import type { Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { failedKeys, readBackfills } from '../warehouse/backfills.js';
import { isBackfillFailed } from './follow.js';
import { askLedgers } from './ledgers.js';
import { isUnknown } from './open-backfills.js';

/** What a backfill that has ended has left as failed. */
export interface FailedIn {
  /** What it was started with, unjudged. */
  readonly input: unknown;
  /** In words: `Completed`, a failure's type, `Cancelled`, … */
  readonly ended: string;
  readonly failed: number;
  /** Keys between which all that has failed lies; absent where they are not known. */
  readonly first?: string;
  readonly last?: string;
}

/** Keys of a page, and runs of one id that are looked through. */
const PAGE = 10_000;
const RUNS = 100;

/**
 * Looks for what has failed in a backfill, of which Temporal knows unless its history is gone, and the ledger unless no worker
 * has begun it. `running` where it has not ended; undefined where neither knows the id.
 */
export async function failedIn(
  settings: Settings,
  repave: RepaveClient,
  id: string,
): Promise<FailedIn | 'running' | undefined> {
  const kept = await keptByTemporal(repave, id);
  if (kept === 'running') return kept;
  if (kept === undefined) return byLedger(settings, id, undefined);
  const { input, run } = kept;
  const outcome = await outcomeOf(repave.handle(id, run));
  if ('failed' in outcome) return { input, ...outcome };
  // It has no result that says it: the ledger has what there was until then.
  const recorded = await byLedger(settings, id, run);
  return { failed: 0, ...recorded, input, ended: outcome.ended };
}

async function keptByTemporal(
  repave: RepaveClient,
  id: string,
): Promise<{ readonly input: unknown; readonly run: string } | 'running' | undefined> {
  try {
    const newest = await repave.temporal.workflow.getHandle(id).describe();
    if (newest.type !== WORKFLOW_TYPES.backfill) return undefined;
    if (newest.status.name === 'RUNNING') return 'running';
    const run = newest.raw.workflowExecutionInfo?.firstRunId || newest.runId;
    return { input: await repave.handle(id, run).input(), run };
  } catch (error) {
    if (isUnknown(error)) return undefined;
    throw error;
  }
}

async function outcomeOf(handle: BackfillHandle): Promise<Omit<FailedIn, 'input'> | { readonly ended: string }> {
  try {
    const { failed, first, last } = await handle.result();
    return { ended: 'Completed', failed, first, last };
  } catch (error) {
    if (!isBackfillFailed(error)) throw error;
    const { type: ended, result } = error;
    return result ? { ended, failed: result.failed, first: result.first, last: result.last } : { ended };
  }
}

/** What the ledgers have of a run, or of the id's newest. */
async function byLedger(settings: Settings, id: string, run: string | undefined): Promise<FailedIn | undefined> {
  const found = await askLedgers(settings, async (database) => {
    const row = (await readBackfills(database, { id, limit: RUNS })).find((each) => !run || each.run === run);
    if (!row) return [];
    const { failed, ...span } = await standingFailures(database, row.run);
    const { input, outcome, startedAt } = row;
    // Failures of an older version do not say which backfill they are part of.
    return [{ startedAt, input, ended: outcome ?? 'lost', failed: Math.max(failed, row.failed), ...span }];
  });
  return found.flat().sort((a, b) => b.startedAt.getTime() - a.startedAt.getTime())[0];
}

async function standingFailures(database: Database, run: string): Promise<Pick<FailedIn, 'failed' | 'first' | 'last'>> {
  let [first, last]: (string | undefined)[] = [];
  let failed = 0;
  for (;;) {
    const keys = await failedKeys(database, run, last, PAGE);
    first ??= keys[0];
    last = keys.at(-1) ?? last;
    failed += keys.length;
    if (keys.length < PAGE) return { failed, first, last };
  }
}
