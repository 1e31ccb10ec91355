import { FAILURES } from '../contract.js';
import { Failure } from '../failure.js';
import { abortable } from './abortable.js';
import { claim, countFault } from './claim.js';
import { createMissingPartition } from './create-partition.js';
import type { Database } from './database.js';
import { withDeadline } from './deadline.js';
import type { FillOutcome, FillRequest, Origin } from './fill-request.js';
import { begin, commit } from './transaction.js';
import { refuseNotReady } from './ready.js';
import { versionByCode } from './code-version.js';
import { replaceWindow } from './replace-window.js';
import { type ComesAfter, upstreamDigests } from './upstream.js';
import { refuseBeforeUpstream } from './upstream-ready.js';
import { spoolRows, type SpooledRows } from './source-rows.js';
import { readTarget } from './target.js';
import { attemptName } from './attempt-name.js';
import { withSession } from './with-session.js';

/** Times the rows of a source are read again since another run's fill overtook them. */
const SPOOL_TRIES = 3;

/**
 * Replaces one partition's rows in one transaction: at every instant, whatever dies, a reader's statement sees the old rows
 * or the new. The ledger's row commits with them, at most once a run; once a newer attempt has begun, this one cannot commit.
 *
 * Throws a `Failure`: retryable kinds leave nothing behind, final ones leave the old rows. Rejects with `request.signal.reason`
 * once that is aborted, after its query has ended on the server and its transaction was rolled back.
 */
export async function fill(database: Database, request: FillRequest): Promise<FillOutcome> {
  const mine: { fence?: number } = {};
  try {
    // By this clock, by which the plan was made too; before a row is read.
    const unfinished = Date.parse(request.window.end) > Date.now();
    return await withDeadline({ ...request, unfinished }, async (limited) => {
      limited.signal.throwIfAborted();
      request.onStep?.('claim', 0);
      await abortable(refuseOtherLedger(database, request), limited.signal);
      const { fence } = await withSession(database, limited.signal, (session) => claim(session, database, request));
      mine.fence = fence;
      // From here on a passed deadline ends what a cancel ends.
      const after = await abortable(refuseBeforeUpstream(database, limited), limited.signal);
      await refuseNotReady(database, limited, fence);
      if (request.pipeline.create) await createMissingPartition(database, limited, fence);
      return await fillAs(database, limited, fence, after);
    });
  } catch (error) {
    if (!(error instanceof Failure) || mine.fence === undefined) throw error;
    throw await spendTry(database, request, mine.fence, error);
  }
}

async function fillAs(
  database: Database,
  request: FillRequest,
  fence: number,
  after: ComesAfter | undefined,
): Promise<FillOutcome> {
  const { pipeline, signal } = request;
  // Rows that are read under the lock are newer than any fill before it.
  if (pipeline.kind === 'sql' || pipeline.stage === false) {
    const known = { ...request, origin: await originOf(database, request, fence, after) };
    return mustFill(await replaceWindow(database, known, fence, signal, undefined), request);
  }
  for (let tries = 1; tries <= SPOOL_TRIES; tries++) {
    const known = { ...request, origin: await originOf(database, request, fence, after) };
    request.onStep?.('spool', 0);
    const before = await beforeSpool(database, request, fence, signal);
    const spooled: SpooledRows = await spoolRows(pipeline, request, before.target, database.spoolDir);
    try {
      const outcome = await replaceWindow(database, known, fence, signal, { ...spooled, after: before.latest });
      if (outcome !== 'overtaken') return outcome;
    } finally {
      await spooled.spool.close();
    }
  }
  throw new Failure(
    'Conflict',
    `Other runs filled ${pipeline.name} ${request.window.key} each time its source had been read (${SPOOL_TRIES} times). It is tried again.`,
    { retryAfterMs: 10_000 },
  );
}

/** Looked up each time before the rows are read: what moves meanwhile, and stays so, is then seen to have moved. */
async function originOf(
  database: Database,
  request: FillRequest,
  fence: number,
  after: ComesAfter | undefined,
): Promise<Origin> {
  const { window } = request;
  const upstream = after && (await upstreamDigests(database, after, [window.key])).get(window.key);
  return { sourceVersion: await versionByCode(request), upstream };
}

function mustFill(outcome: FillOutcome | 'overtaken', request: FillRequest): FillOutcome {
  if (outcome === 'overtaken')
    throw new Failure(
      'Unexpected',
      `${request.pipeline.name} ${request.window.key} was overtaken without rows of its own.`,
    );
  return outcome;
}

/** The target's columns, by which values are written, and the newest fill before the source is read. */
async function beforeSpool(database: Database, request: FillRequest, fence: number, signal: AbortSignal) {
  const { pipeline, window, owner } = request;
  return withSession(database, signal, async (session) => {
    await begin(session, database, {
      applicationName: attemptName(owner, fence),
      zone: pipeline.partition.zone,
      lockTimeoutMs: 3_000,
      statementTimeoutMs: request.timeLeftMs,
    });
    const target = await readTarget(session, pipeline);
    const [row] = await session.rows<{ latest: number }>(
      `SELECT coalesce(pg_catalog.max(id), 0)::pg_catalog.float8 AS latest FROM repave.fill WHERE pipeline = $1 AND key = $2`,
      [pipeline.name, window.key],
    );
    await commit(session);
    return { target, latest: row?.latest ?? 0 };
  });
}

/** Two installations on one task queue may hold each other up; they must never write for each other. */
async function refuseOtherLedger(database: Database, request: FillRequest): Promise<void> {
  if (request.ledger === undefined) return;
  const [row] = await database.query<{ id: string }>('SELECT id FROM repave.ledger');
  if (row?.id === request.ledger) return;
  throw new Failure(
    'WrongLedger',
    `This worker’s database has the ledger ${row?.id ?? '(none)'}, and the run was planned against ${request.ledger}: two installations poll one task queue. Give each its own REPAVE_TASK_QUEUE.`,
    { retryAfterMs: 10_000 },
  );
}

/** Counts what the pipeline did wrong against its tries, and makes the last one final. The world's faults use up nothing. */
async function spendTry(database: Database, request: FillRequest, fence: number, failure: Failure): Promise<Failure> {
  if (FAILURES[failure.type] !== 'counted') return failure;
  const { attempts } = request.pipeline.retry;
  let faults: number | undefined;
  try {
    faults = await countFault(database, request, fence);
  } catch {
    // Not counted is tried once more; counted twice would be tried too seldom.
    return failure;
  }
  if (faults === undefined || faults < attempts) return failure;
  return new Failure(failure.type, `${failure.message} (try ${faults} of ${attempts})`, {
    ...failure.options,
    final: true,
  });
}
