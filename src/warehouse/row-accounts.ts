import { Failure } from '../failure.js';
import { counted } from './counted.js';
import type { Database } from './database.js';
import type { FillRequest } from './fill-request.js';
import { quoted } from './identifier.js';
import { describeScope } from './scope.js';
import type { RowCounters } from './row-counters.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { WindowCondition } from './window-condition.js';

/** What a fill has counted when its rows are in. */
export interface RowAccounts {
  /** Rows that the query or the source gave. */
  readonly sent: number;
  /** Rows that stand in the window. */
  readonly inside: number;
  /** Rows of the window that were deleted for them. */
  readonly deleted: number;
  /** What the transaction has written in the target, as if the rows that stand unchanged were inserted. */
  readonly written: RowCounters;
}

/**
 * Holds the fill to its window: each row sent stands there, nothing else does, and nothing was written or deleted elsewhere in the
 * target. Throws `RowsOutsideWindow`, `SchemaMismatch` where triggers dropped, added or deleted rows, or `Conflict` where another session did.
 */
export async function refuseUnaccounted(
  session: Session,
  database: Database,
  window: WindowCondition,
  request: FillRequest,
  target: Target,
  accounts: RowAccounts,
): Promise<void> {
  const { sent, inside, deleted, written } = accounts;
  if (inside === sent && written.inserted + written.updated === sent && written.deleted === deleted) return;
  const mine = await ownRows(session, database, window, request);
  if (mine.outside > 0) throw outside(window, request, target, accounts, mine);
  if (inside < sent) throw droppedRows(target, sent, sent - inside);
  // Of its own rows it has deleted those that were inserted and do not stand.
  const others = written.deleted - deleted - (written.inserted - mine.inside);
  if (inside === sent && others > 0) throw deletedRows(request, target, others);
  if (mine.inside > sent) {
    throw new Failure(
      'SchemaMismatch',
      `A trigger or a function added ${counted(mine.inside - sent)} to the ${sent} of ${request.pipeline.name} ${request.window.key} in ${target.name}. The old rows stand. Drop it, or let it pass Repave’s role.`,
    );
  }
  if (inside > sent) {
    throw new Failure(
      'Conflict',
      `Another session inserted ${counted(inside - sent)} into the window of ${request.pipeline.name} ${request.window.key} while it was filled. It is tried again; let only Repave write there.`,
    );
  }
}

function deletedRows({ pipeline, window: { key } }: FillRequest, target: Target, rows: number): Failure {
  return new Failure(
    'SchemaMismatch',
    `A trigger or a function deleted ${counted(rows)} of ${target.name} beside those of ${pipeline.name} ${key}, which another partition may have been filled with. The old rows stand. Drop it, or let it pass Repave’s role.`,
  );
}

/** Rows were sent and are not in the window, nor anywhere else in the target. */
export function droppedRows(target: Target, sent: number, missing: number): Failure {
  return new Failure(
    'SchemaMismatch',
    `${missing} of the ${counted(sent)} sent to ${target.name} ${missing === 1 ? 'was' : 'were'} dropped by a trigger. The old rows stand. Drop it, or let it pass Repave’s role.`,
  );
}

interface OwnRows {
  readonly inside: number;
  readonly outside: number;
  readonly nulls: number;
  /** Of the outside ones those that are in the window's time and of another scope. */
  readonly elsewhere: number;
  readonly lowest: string | null;
  readonly highest: string | null;
}

/**
 * The rows that this transaction has written, those of its subtransactions included: rows that it sees although the
 * transaction that wrote them is in progress. A pass over the whole table, made only where the counts do not agree.
 */
async function ownRows(
  session: Session,
  database: Database,
  window: WindowCondition,
  request: FillRequest,
): Promise<OwnRows> {
  const column = quoted(request.pipeline.partition.column);
  // Greater than the id of any transaction or subtransaction that can have written a row by now.
  const [beyond] = await database.query<{ id: string }>(
    'SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text AS id',
  );
  const [row] = await session.rows<OwnRows>(
    // IS NOT TRUE holds for NULL and infinity as well, which NOT (…) would pass over.
    `SELECT pg_catalog.count(*) FILTER (WHERE inside)::pg_catalog.float8 AS inside,
            pg_catalog.count(*) FILTER (WHERE inside IS NOT TRUE)::pg_catalog.float8 AS outside,
            pg_catalog.count(*) FILTER (WHERE at IS NULL)::pg_catalog.float8 AS nulls,
            pg_catalog.count(*) FILTER (WHERE in_time AND inside IS NOT TRUE)::pg_catalog.float8 AS elsewhere,
            pg_catalog.min(at) FILTER (WHERE in_time IS NOT TRUE)::pg_catalog.text AS lowest,
            pg_catalog.max(at) FILTER (WHERE in_time IS NOT TRUE)::pg_catalog.text AS highest
       FROM (SELECT ${column} AS at, (${window.time}) AS in_time, (${window.condition}) AS inside
               FROM (SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8 AS first) me, ${window.table},
                    -- xmin has the lower 32 bits of an id.
                    LATERAL (SELECT me.first + ((xmin::pg_catalog.text::pg_catalog.int8 - me.first) & 4294967295) AS id) writer
              WHERE CASE WHEN writer.id < $${window.values.length + 1}::pg_catalog.int8
                         THEN pg_catalog.pg_xact_status(writer.id::pg_catalog.text::pg_catalog.xid8) = 'in progress' END) mine`,
    [...window.values, beyond?.id],
  );
  if (!row) throw new Error('A count gave no row');
  return row;
}

function outside(
  window: WindowCondition,
  { pipeline, window: { key } }: FillRequest,
  target: Target,
  { sent, inside }: RowAccounts,
  mine: OwnRows,
): Failure {
  const which = [
    mine.nulls > 0 ? `${mine.nulls} with NULL` : '',
    mine.lowest !== null ? `from ${mine.lowest} to ${mine.highest}` : '',
    mine.elsewhere > 0 ? `${mine.elsewhere} of another scope` : '',
  ].filter(Boolean);
  const scope = pipeline.scope ? ` and scope (${describeScope(pipeline.scope)})` : '';
  const bounds = `[${window.values[0]}, ${window.values[1]}) by ${pipeline.partition.column}${scope} (${which.join(', ')})`;
  const only = mine.elsewhere > 0 ? 'Select only rows of the scope' : 'Select only the window’s rows';
  // A local day may begin twice, by a clock that goes back just after midnight: then its instants have two dates.
  const byDate = target.partitionType !== 'timestamptz' && pipeline.partition.by !== 'hour';
  const [from, to] = byDate ? [':date', ':end_date'] : [':start', ':end'];
  const where = `WHERE … >= ${from} AND … < ${to}${mine.elsewhere > 0 ? ' AND …' : ''}`;
  return new Failure(
    'RowsOutsideWindow',
    inside < sent
      ? `${mine.outside} of ${counted(sent)} of ${pipeline.name} ${key} do not lie in its window ${bounds}. The old rows stand. ${only}, by what it gives as ${pipeline.partition.column}: ${where}.`
      : `A trigger or a function wrote ${counted(mine.outside)} into ${target.name} beside the ${sent} of ${pipeline.name} ${key}, outside its window ${bounds}. The old rows stand. Drop it, or let it pass Repave’s role.`,
  );
}
