import { Failure } from '../failure.js';
import type { FillRequest } from './fill-request.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { WindowCondition } from './window-condition.js';

/**
 * After the DELETE nothing may be left: a trigger may have kept rows, or another session written some, which the new ones
 * would then double. In a savepoint, which gives back the lock that this look takes on the target: `refuseSelfRead` must
 * see the query's own.
 */
export async function refuseKeptRows(
  session: Session,
  window: WindowCondition,
  { pipeline, window: { key } }: FillRequest,
  target: Target,
): Promise<void> {
  await session.query('SAVEPOINT repave_kept');
  const [row] = await session.rows<{ kept: boolean }>(
    `SELECT EXISTS (SELECT FROM ${window.table} WHERE ${window.condition}) AS kept`,
    window.values,
  );
  // Released as well, or all that follows would run in the savepoint's own transaction.
  await session.query('ROLLBACK TO SAVEPOINT repave_kept; RELEASE SAVEPOINT repave_kept');
  if (!row?.kept) return;
  if (target.hasTriggers) {
    throw new Failure(
      'SchemaMismatch',
      `A trigger of ${target.name} keeps rows that Repave deletes: the window is not empty after its DELETE. The old rows stand. Drop it, or let it pass Repave’s role.`,
    );
  }
  throw new Failure(
    'Conflict',
    `Another session inserted rows into the window of ${pipeline.name} ${key} while it was filled. It is tried again; let only Repave write there.`,
  );
}
