import { Failure } from '../failure.js';
import { checkWarnings, checkWindow, refuseFailedChecks } from './checks.js';
import { windowChecksum } from './checksum.js';
import { counted } from './counted.js';
import type { Database } from './database.js';
import type { CheckOutcome, FillRequest } from './fill-request.js';
import { refuseSelfRead } from './insert.js';
import { judgeChecks } from './judge-checks.js';
import { refuseKeptRows } from './kept-rows.js';
import { refuseUnaccounted } from './row-accounts.js';
import { openSupply, type RowSupply, type Supplied } from './row-supply.js';
import type { Session } from './session.js';
import type { SpooledSource } from './spooled-supply.js';
import type { Target } from './target.js';
import { equalsWindow, holdRows, writeHeldRows } from './unchanged.js';
import { windowCondition, type WindowCondition } from './window-condition.js';

/** What stands in the window once it is written, still unseen by others. */
export interface WrittenWindow {
  readonly deleted: number;
  /** Rows that stand in the window. */
  readonly inserted: number;
  /** Whether none was written, since the new rows equal the old. */
  readonly unchanged: boolean;
  readonly checks: readonly CheckOutcome[];
  readonly warnings: readonly string[];
  /** Of the rows that stand in the window; absent where the pipeline keeps none. */
  readonly checksum?: string;
  /** What the pipeline's `changed` says. Absent: it has none. */
  readonly sourceVersion?: string;
}

/**
 * Under the locks: delete, insert, count, check; with `skipUnchanged` it writes nothing where the new rows equal the old.
 * Neither judges what the checks say, nor records nor commits. Another session that writes into the window meanwhile is seen
 * by the count, where it adds rows before that; what it changes, or adds later, is not.
 *
 * Throws `SchemaMismatch`, `RowsOutsideWindow`, `Conflict` and what the servers say; then the transaction is the caller's to
 * roll back.
 */
export async function writeWindow(
  session: Session,
  database: Database,
  request: FillRequest,
  target: Target,
  spooled: SpooledSource | undefined,
): Promise<WrittenWindow> {
  await judgeChecks(session, request.pipeline, target);
  const supply = await openSupply(session, request, target, spooled);
  try {
    return await replaceRows(session, database, request, target, supply);
  } finally {
    await supply.close();
  }
}

async function replaceRows(
  session: Session,
  database: Database,
  request: FillRequest,
  target: Target,
  supply: RowSupply,
): Promise<WrittenWindow> {
  const { pipeline, window } = request;
  const inWindow = windowCondition(pipeline, target, window);
  if (pipeline.kind === 'sql' && target.hasTriggers) await refuseSelfRead(session, pipeline, target);

  let held: Supplied | undefined;
  let unchanged = false;
  if (pipeline.skipUnchanged) {
    request.onStep?.('insert', 0);
    held = await holdRows(session, supply, target);
    // The comparison itself reads the target.
    if (pipeline.kind === 'sql') await refuseSelfRead(session, pipeline, target);
    unchanged = await equalsWindow(session, inWindow, supply.columns, target);
  }
  const deleted = unchanged ? 0 : await deleteRows(session, inWindow, request, target);
  const { sent, sums, sourceVersion } = held ?? (await insertRows(session, inWindow, request, target, supply));
  if (held && !unchanged && sent > 0) await writeHeldRows(session, inWindow.table, supply.columns);
  // What is deferred must happen before the count: at COMMIT a deferred trigger could write rows that nothing has seen.
  await session.query('SET CONSTRAINTS ALL IMMEDIATE');

  request.onStep?.('check', sent);
  const { inside, written, checks } = await checkWindow(session, inWindow, pipeline, window, target, sums);
  await refuseUnaccounted(session, database, inWindow, request, target, {
    sent,
    inside,
    deleted,
    written: unchanged ? { ...written, inserted: written.inserted + sent } : written,
  });
  const emptied = deleted > 0 && sent === 0 ? ['emptied'] : [];
  // Taken from the table, not from what was sent: a trigger may have changed it on its way.
  const summed = target.columns.filter(({ name }) => supply.columns.includes(name));
  const checksum = pipeline.checksum
    ? await windowChecksum(
        session,
        inWindow,
        summed.map(({ name, type }) => [name, type]),
      )
    : undefined;
  const warnings = [...emptied, ...checkWarnings(checks)];
  return { deleted, inserted: sent, unchanged, checks, warnings, checksum, sourceVersion };
}

async function deleteRows(
  session: Session,
  inWindow: WindowCondition,
  request: FillRequest,
  target: Target,
): Promise<number> {
  request.onStep?.('delete', 0);
  const { rowCount } = await session.query(
    `DELETE FROM ${inWindow.table} WHERE ${inWindow.condition}`,
    inWindow.values,
  );
  await refuseKeptRows(session, inWindow, request, target);
  return rowCount ?? 0;
}

async function insertRows(
  session: Session,
  inWindow: WindowCondition,
  request: FillRequest,
  target: Target,
  supply: RowSupply,
): Promise<Supplied> {
  request.onStep?.('insert', 0);
  const supplied = await supply.write(session, { table: inWindow.table, mayDropRows: target.mayDropRows });
  const { pipeline } = request;
  if (pipeline.kind === 'sql' && !target.hasTriggers) await refuseSelfRead(session, pipeline, target);
  return supplied;
}

/** Throws `CheckFailed` where what was written may not be seen, naming why. */
export function refuseWritten({ pipeline, window }: FillRequest, { deleted, checks, warnings }: WrittenWindow): void {
  refuseFailedChecks(pipeline, window.key, checks);
  if (warnings.includes('emptied') && !pipeline.allowEmpty) {
    throw new Failure(
      'CheckFailed',
      `The fill of ${pipeline.name} ${window.key} would empty a window that holds ${counted(deleted)}, and \`allowEmpty\` is false. The old rows stand.`,
    );
  }
}
