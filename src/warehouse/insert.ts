import type { Window } from '../calendar/calendar.js';
import { Failure } from '../failure.js';
import type { ParameterName, SqlPipeline } from '../pipeline/pipeline.js';
import { refuseMismatch } from './columns.js';
import { toFailure } from './errors.js';
import { quotedList } from './identifier.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/** The INSERT of a SQL pipeline, as the server has parsed it. */
export interface PreparedInsert {
  readonly text: string;
  readonly columns: readonly string[];
}

/**
 * Puts the query behind `INSERT INTO target (columns in the query's order)`, verbatim, and has the server parse just that:
 * its verdict on names, types and casts comes before a row moves. Throws `SchemaMismatch` or `InvalidPipeline`.
 */
export async function prepareInsert(
  session: Session,
  pipeline: SqlPipeline,
  target: Target,
  table: string,
): Promise<PreparedInsert> {
  try {
    const described = await session.describe(pipeline.query.text);
    const columns = described.map(({ name }) => name);
    refuseMismatch(pipeline.name, columns, target, pipeline.partition.column);
    // The newline ends a comment that the list might end in; the query begins its own line, so positions in it are its own.
    const text = `INSERT INTO ${table} (${quotedList(columns)})\n${pipeline.query.text}\n`;
    await session.describe(text);
    return { text, columns };
  } catch (error) {
    throw toFailure(error, { beforeRows: true });
  }
}

/**
 * Runs the INSERT and returns how many rows the query gave. Where a trigger may drop rows the INSERT's own count says only
 * how many it kept, so there the server is asked, by EXPLAIN ANALYZE, which runs it all the same.
 */
export async function insertRows(
  session: Session,
  pipeline: SqlPipeline,
  window: Window,
  target: Target,
  insert: PreparedInsert,
): Promise<number> {
  const values = parameterValues(pipeline.query.parameters, window);
  if (!target.mayDropRows) return (await session.query(insert.text, values)).rowCount ?? 0;
  const [explained] = await session.rows<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>(
    `EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, COSTS OFF, FORMAT JSON)\n${insert.text}`,
    values,
  );
  // The topmost node puts rows into the table; the one below it gives them.
  const source = explained?.['QUERY PLAN'][0]?.Plan.Plans?.find((plan) => plan['Parent Relationship'] === 'Outer');
  if (!source) throw new Error('EXPLAIN ANALYZE of the INSERT does not say how many rows its query gave');
  return Math.round(source['Actual Rows'] * source['Actual Loops']);
}

interface PlanNode {
  readonly Plans?: readonly PlanNode[];
  readonly 'Parent Relationship'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
}

/** The values of a query's parameters for one window, in its order. */
function parameterValues(parameters: readonly ParameterName[], window: Window): string[] {
  return parameters.map((name) => {
    switch (name) {
      case 'start':
        return window.start;
      case 'end':
        return window.end;
      case 'date':
        return window.date;
      case 'end_date':
        return window.endDate;
      case 'key':
        return window.key;
      default:
        return name satisfies never;
    }
  });
}

/**
 * Refuses a query that has read its own target, through a view or a function that the parser cannot see: its window was
 * already empty, and a neighbour may have been in the middle of a fill. Only a read takes this lock on the target. Asked
 * after the INSERT; where triggers of users would have read it too, before the DELETE: then only what a view reads is seen.
 */
export async function refuseSelfRead(session: Session, pipeline: SqlPipeline, target: Target): Promise<void> {
  const [row] = await session.rows<{ reads: boolean }>(
    `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l
                      -- Not of partitioned tables: a write to a part locks those above it so, to read the part's bounds.
                      JOIN pg_catalog.pg_class c ON c.oid = l.relation AND c.relkind = 'r'
                     WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation' AND l.mode = 'AccessShareLock'
                       AND l.relation = ANY ($1::pg_catalog.oid[])) AS reads`,
    [target.tree],
  );
  if (row?.reads) {
    throw new Failure(
      'InvalidPipeline',
      `The query of ${pipeline.name} reads its own target ${target.name} through a view or a function. A fill has already deleted the window, so it would read what is not there. Read another table.`,
    );
  }
}
