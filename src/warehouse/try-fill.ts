import { randomUUID } from 'node:crypto';
import type { Window } from '../calendar/calendar.js';
import { Failure } from '../failure.js';
import type { Pipeline, Scope, TypeScriptPipeline } from '../pipeline/pipeline.js';
import { abortable } from './abortable.js';
import { attemptName } from './attempt-name.js';
import { nameBlocker } from './blocked-table.js';
import { explained, makeMissingParts } from './create-partition.js';
import { versionByCode } from './code-version.js';
import type { Database } from './database.js';
import { withDeadline } from './deadline.js';
import { sqlstate } from './errors.js';
import type { FillRequest } from './fill-request.js';
import { firstRows, type FirstRows } from './first-rows.js';
import { holderOf } from './holder.js';
import { takeLocks, takeParts, windowLock, type WindowLock } from './lock.js';
import { refuseNotReady } from './ready.js';
import { canonicalScope } from './scope.js';
import type { Session } from './session.js';
import { spoolRows } from './source-rows.js';
import type { SpooledSource } from './spooled-supply.js';
import { type StepTime, StepTimes } from './step-times.js';
import { readTarget, type Target } from './target.js';
import { begin } from './transaction.js';
import { windowCondition } from './window-condition.js';
import { withSession } from './with-session.js';
import { refuseWritten, writeWindow, type WrittenWindow } from './write-window.js';

export interface TrialRequest {
  readonly pipeline: Pipeline;
  readonly window: Window;
  /** Where the query of a pipeline with a `source` runs. */
  readonly source?: Database;
  /** Rows to show, at most. */
  readonly rows: number;
  /** Aborted to end it: its query is ended on the server and its transaction rolled back before `tryFill` rejects. */
  readonly signal: AbortSignal;
}

/** What a fill would do, and the first rows that would then stand in the window. */
export interface Trial extends WrittenWindow, FirstRows {
  /** The target's full name. */
  readonly target: string;
  /** The pipeline's own, with each value in its one text. */
  readonly scope: Scope;
  /** Why a fill would fail once its rows are written: `CheckFailed`. */
  readonly refused?: Failure;
  /** How long each step took; reading the first rows is none of them. */
  readonly steps: readonly StepTime[];
}

/** Milliseconds a trial waits for the window's lock, as a fill does. */
const WINDOW_WAIT_MS = 6_000;
/** Milliseconds its statements wait for a lock on the table, as a fill's do. */
const TABLE_LOCK_WAIT_MS = 30_000;
/** It claims nothing. */
const NO_FENCE = 0;

/**
 * Does all that a fill does up to its row in the ledger, under the same locks, and rolls back: no row, no claim and nothing
 * in the ledger is left, nor is a ledger needed. Sequences go on, since they are no part of a transaction.
 *
 * Throws the `Failure` that a fill would end with before its checks are judged, `SourceNotReady` too; `Conflict` where the
 * window's lock is not to be had in time. Rejects with `request.signal.reason` once that is aborted.
 */
export async function tryFill(database: Database, trial: TrialRequest): Promise<Trial> {
  const times = new StepTimes();
  const { pipeline, window, source, signal } = trial;
  const asked: FillRequest = {
    pipeline,
    window,
    source,
    owner: { run: randomUUID(), activity: 'try' },
    attempt: { scheduledAt: Date.now(), number: 1 },
    timeLeftMs: pipeline.timeoutMs,
    signal,
    onStep: (step) => times.enter(step),
  };
  return withDeadline(asked, async (limited) => {
    await refuseNotReady(database, limited, NO_FENCE);
    const request = { ...limited, origin: { sourceVersion: await versionByCode(limited) } };
    const write = (spooled?: SpooledSource): Promise<Trial> =>
      inTrial(database, request, (session, target) =>
        writeTrial(session, database, request, target, spooled, trial, times),
      );
    if (pipeline.kind === 'sql' || pipeline.stage === false) return await write();
    const spooled = await spool(database, request, pipeline);
    try {
      return await write(spooled);
    } finally {
      await spooled.spool.close();
    }
  });
}

async function spool(database: Database, request: FillRequest, pipeline: TypeScriptPipeline): Promise<SpooledSource> {
  request.onStep?.('spool', 0);
  const target = await inTrial(database, request, (_, found) => Promise.resolve(found));
  return { ...(await spoolRows(pipeline, request, target, database.spoolDir)), after: 0 };
}

async function writeTrial(
  session: Session,
  database: Database,
  request: FillRequest,
  target: Target,
  spooled: SpooledSource | undefined,
  { rows }: TrialRequest,
  times: StepTimes,
): Promise<Trial> {
  const { pipeline, window, signal } = request;
  const scope = await canonicalScope(session, pipeline, target);
  await lockWindow(session, database, request, windowLock(target, window, scope), target);
  try {
    const judged = await judgeable(session, request);
    const whole = await withParts(session, request, target);
    const written = await writeWindow(session, database, judged, whole, spooled);
    const steps = times.end();
    const shown = await firstRows(session, windowCondition(pipeline, target, window), target, rows);
    return { ...written, ...shown, target: target.name, scope, refused: refusal(request, written), steps };
  } catch (error) {
    throw await abortable(nameBlocker(error, database, target), signal).catch(() => error);
  }
}

/** Where there is no ledger, the request without the checks that compare with it: a first fill passes them too. */
async function judgeable(session: Session, request: FillRequest): Promise<FillRequest> {
  const { pipeline } = request;
  if (!pipeline.checks.some(({ kind }) => kind === 'change')) return request;
  const [ledger] = await session.rows(
    `SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'repave' AND c.relname = 'partition'`,
  );
  if (ledger) return request;
  return { ...request, pipeline: { ...pipeline, checks: pipeline.checks.filter(({ kind }) => kind !== 'change') } };
}

/**
 * With `create`, the target as it is once the window's parts are there; they go with the transaction. Beside a default part
 * they go at once, since they keep its readers out: it takes the trial's rows as well as they would.
 */
async function withParts(session: Session, request: FillRequest, target: Target): Promise<Target> {
  if (!request.pipeline.create) return target;
  try {
    await session.query('SAVEPOINT repave_parts');
    await takeParts(session, target);
    const made = await makeMissingParts(session, request, target);
    const needed = made.some(({ parent }) => !parent.hasDefault);
    await session.query(`${needed ? '' : 'ROLLBACK TO SAVEPOINT repave_parts; '}RELEASE SAVEPOINT repave_parts`);
    return needed ? await readTarget(session, request.pipeline) : target;
  } catch (error) {
    throw explained(error, request);
  }
}

/** Hands `work` a transaction pinned as a fill's is, and rolls it back however that ends. */
async function inTrial<T>(
  database: Database,
  request: FillRequest,
  work: (session: Session, target: Target) => Promise<T>,
): Promise<T> {
  return withSession(database, request.signal, async (session) => {
    await begin(session, database, {
      applicationName: attemptName(request.owner, NO_FENCE),
      zone: request.pipeline.partition.zone,
      lockTimeoutMs: WINDOW_WAIT_MS,
      statementTimeoutMs: request.timeLeftMs,
    });
    const result = await work(session, await readTarget(session, request.pipeline));
    await session.rollback();
    return result;
  });
}

async function lockWindow(
  session: Session,
  database: Database,
  request: FillRequest,
  lock: WindowLock,
  target: Target,
): Promise<void> {
  const { pipeline, window } = request;
  request.onStep?.('lock', 0);
  try {
    await takeLocks(session, target, lock);
  } catch (error) {
    if (sqlstate(error) !== '55P03') throw error;
    const holder = await abortable(holderOf(database, target, lock), request.signal);
    const held = holder ? `is held by ${holder.words}` : 'was held until just now';
    throw new Failure(
      'Conflict',
      `The window of ${pipeline.name} ${window.key} ${held}. Try again once that has ended.`,
    );
  }
  await session.query(`SELECT pg_catalog.set_config('lock_timeout', $1, true)`, [String(TABLE_LOCK_WAIT_MS)]);
}

function refusal(request: FillRequest, written: WrittenWindow): Failure | undefined {
  try {
    refuseWritten(request, written);
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}
