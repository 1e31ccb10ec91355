import { Context } from '@temporalio/activity';
import { Failure } from '../failure.js';
import { redactedError } from '../telemetry/redacted-error.js';
import { abortable } from '../warehouse/abortable.js';
import type { Database } from '../warehouse/database.js';
import type { ActivityDeps } from './activity-deps.js';
import type { NoticeRequest } from './messages.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/** Milliseconds that the ledger has to answer until somebody is told without it. */
const ANSWER_WITHIN_MS = 10_000;

/**
 * What `use` finds in the ledger of the run that an event is about; undefined where none knows of it, or that does not answer
 * within ten seconds, or whatever else it fails by. Throws what another worker may do better: `WrongLedger`, `WorkerOutdated`.
 */
export async function inLedger<Result>(
  deps: ActivityDeps,
  request: NoticeRequest,
  use: (database: Database) => Promise<Result>,
): Promise<Result | undefined> {
  const { cancellationSignal, log } = Context.current();
  const { ledger } = request;
  if (ledger === undefined) return undefined;
  const late = AbortSignal.timeout(ANSWER_WITHIN_MS);
  try {
    const asking = withPlannedDatabase(deps, placeOfRun(deps, request), ledger, use);
    return await abortable(asking, AbortSignal.any([cancellationSignal, late]));
  } catch (error) {
    cancellationSignal.throwIfAborted();
    if (error instanceof Failure && (error.type === 'WrongLedger' || error.type === 'WorkerOutdated')) throw error;
    log.warn('The ledger does not answer: an event is told without it, or not recorded there', {
      id: request.id,
      failure: redactedError(error),
    });
    return undefined;
  }
}
