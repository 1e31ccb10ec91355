import type { Attempt, RepaveClient } from '../client.js';
import type { Progress } from '../contract.js';
import { type BackfillProgress, backfillProgress } from '../warehouse/backfill-progress.js';
import type { BackfillRow } from '../warehouse/backfills.js';
import type { Database } from '../warehouse/database.js';
import { progressByLedger } from './ledger-progress.js';
import { isUnknown } from './open-backfills.js';
import { doneOf } from './progress-words.js';
import type { Sight } from './sight.js';

/**
 * How a backfill stands: the ledger's word where it has ended, Temporal's where it has not. `lost`: the ledger has it open, and
 * Temporal knows it no more. `unknown`: the ledger has it open, and Temporal was not asked or did not answer.
 */
export type BackfillState =
  | 'running'
  | 'done'
  | 'incomplete'
  | 'stopped'
  | 'cancelled'
  | 'failed'
  | 'terminated'
  | 'timed out'
  | 'lost'
  | 'unknown';

/** A backfill's row with what it has come to: all by the ledger. */
export interface RecordedBackfill extends BackfillRow, Pick<BackfillProgress, 'concurrency' | 'lastFillAt'> {
  /** What is failed as its run has it, the first failures with their messages, how it is set. */
  readonly progress: Progress;
}

export interface BackfillView extends RecordedBackfill {
  readonly state: BackfillState;
  /** Of one that was asked about by its id and runs: what it and its children are at. */
  readonly attempts?: readonly Attempt[];
  /** Present where no worker has said what runs. */
  readonly unanswered?: Sight['unanswered'];
}

/** Of one that has ended its row has the counts: its fills, of which there may be very many, need not be read. */
const BY_ITS_ROW: BackfillProgress = {
  ...{ filled: 0, failed: 0, rows: 0, failures: [], lastFillAt: null, recent: { fills: 0, seconds: 0 } },
  ...{ stopping: false, concurrency: null, startedBy: null },
};

/** What the ledger has of backfills, without asking anybody else. `inDetail`: also what those that have ended were like. */
export async function recordedBackfills(
  database: Database,
  rows: readonly BackfillRow[],
  inDetail: boolean,
): Promise<RecordedBackfill[]> {
  const recorded: RecordedBackfill[] = [];
  for (const row of rows) {
    const seen = row.outcome === null || inDetail ? await backfillProgress(database, row.run) : BY_ITS_ROW;
    if (!seen) continue;
    const { concurrency, lastFillAt, recent } = seen;
    const progress = progressByLedger(row, seen);
    const { filled, failed, rows: inserted } = progress;
    const pace = row.outcome === null ? paceOf(progress, recent) : {};
    recorded.push({
      ...row,
      filled,
      failed,
      rows: inserted,
      concurrency,
      lastFillAt,
      progress: { ...progress, ...pace },
    });
  }
  return recorded;
}

/** Seconds of recent fills below which they say nothing of the rate. */
const TELLING_SECONDS = 10;

function paceOf(
  progress: Progress,
  { fills, seconds }: BackfillProgress['recent'],
): Pick<Progress, 'perMinute' | 'secondsLeft'> {
  if (fills < 2 || seconds < TELLING_SECONDS) return {};
  const left = Math.max(0, progress.total - doneOf(progress));
  return { perMinute: (60 * fills) / seconds, secondsLeft: (left * seconds) / fills };
}

/** Backfills with their states. Only those that the ledger has open are asked of Temporal, and only whether they live. */
export async function viewBackfills(
  recorded: readonly RecordedBackfill[],
  repave: RepaveClient | undefined,
): Promise<BackfillView[]> {
  return Promise.all(
    recorded.map(async (backfill) => {
      const { outcome } = backfill;
      const state = outcome ?? (repave ? await stateInTemporal(backfill, repave) : 'unknown');
      // Nothing is to be expected of one that does not run.
      return state === 'running'
        ? { ...backfill, state }
        : { ...backfill, state, progress: withoutPace(backfill.progress) };
    }),
  );
}

function withoutPace(progress: Progress): Progress {
  return { ...progress, perMinute: undefined, secondsLeft: undefined };
}

/** How a run has ended that the ledger still has open, in Temporal's words. */
const ENDED_AS: Readonly<Record<string, BackfillState>> = {
  COMPLETED: 'done',
  CANCELLED: 'cancelled',
  FAILED: 'failed',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timed out',
};

/** Milliseconds that Temporal may take to say whether a run lives. */
const DESCRIBE_MS = 3_000;

async function stateInTemporal({ id, run }: BackfillRow, repave: RepaveClient): Promise<BackfillState> {
  const { temporal } = repave;
  const describe = (runId?: string): ReturnType<ReturnType<typeof temporal.workflow.getHandle>['describe']> =>
    temporal.withDeadline(Date.now() + DESCRIBE_MS, () => temporal.workflow.getHandle(id, runId).describe());
  try {
    const newest = await describe();
    const { firstRunId } = newest.raw.workflowExecutionInfo ?? {};
    const own = !firstRunId || firstRunId === run;
    if (own && newest.status.name === 'RUNNING') return 'running';
    // The id has run again since: what is asked is how its earlier run ended.
    const { status } = own ? newest : await describe(run);
    return ENDED_AS[status.name] ?? 'unknown';
  } catch (error) {
    return isUnknown(error) ? 'lost' : 'unknown';
  }
}
