import type { Window } from '../calendar/calendar.js';
import { Failure } from '../failure.js';
import type { ParameterName, SqlPipeline } from '../pipeline/pipeline.js';
import { oneSum, sumAnswers, sumChecks } from './check-sum.js';
import { refuseMismatch } from './columns.js';
import { toFailure } from './errors.js';
import type { FillRequest } from './fill-request.js';
import { quotedList, quotedTable } from './identifier.js';
import { parameterValues } from './parameter-values.js';
import { textBehind } from './query-text.js';
import type { Destination, RowSupply, Supplied } from './row-supply.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import { judgedVersion, readVersion, versionAnswers, type VersionQuery } from './version-query.js';

/**
 * Puts the query behind `INSERT INTO target (columns in the query's order)`, verbatim, and has the server parse just that:
 * its verdict on names, types and casts comes before a row moves. Returns the columns. Throws `SchemaMismatch` or
 * `InvalidPipeline`.
 */
async function prepareInsert(
  session: Session,
  pipeline: SqlPipeline,
  target: Target,
  table: string,
): Promise<readonly string[]> {
  try {
    const described = await session.describe(pipeline.query.text);
    const columns = described.map(({ name }) => name);
    refuseMismatch(pipeline.name, columns, target, pipeline.partition.column);
    await session.describe(insertText(pipeline, columns, table));
    return columns;
  } catch (error) {
    throw toFailure(error, { beforeRows: true });
  }
}

/** The rows of a query in the target's own database, by one INSERT. */
export async function insertSupply(
  session: Session,
  request: FillRequest,
  pipeline: SqlPipeline,
  target: Target,
): Promise<RowSupply> {
  const columns = await prepareInsert(session, pipeline, target, quotedTable(pipeline.target));
  const asked = pipeline.changed && (await judgedVersion(session, pipeline.name, pipeline.changed));
  return {
    columns,
    write: (into, destination) => insertRows(into, pipeline, asked, request.window, destination, columns),
    close: async () => undefined,
  };
}

/** The INSERT of a pipeline's query into a table. The newline ends a comment that the list might end in; the query begins its own line, so positions in it are its own. */
export function insertText(pipeline: SqlPipeline, columns: readonly string[], table: string): string {
  return `INSERT INTO ${table} (${quotedList(columns)})\n${pipeline.query.text}\n`;
}

/**
 * Runs the INSERT, and in its own statement, so in its snapshot, the queries of `sum` checks and `changed`: a later one sees later
 * rows, and an earlier one may not see rows that are gone again before anybody asks.
 */
async function insertRows(
  session: Session,
  pipeline: SqlPipeline,
  asked: VersionQuery | undefined,
  window: Window,
  { table, mayDropRows }: Destination,
  columns: readonly string[],
): Promise<Supplied> {
  const { answers, parameters } = besideRows(pipeline, asked);
  const text = insertText(pipeline, columns, table);
  const values = parameterValues(parameters, window);
  if (answers === undefined) {
    const sent = mayDropRows ? await explainedRows(session, text, values) : await insertedRows(session, text, values);
    return { sent, sums: new Map() };
  }
  const inserted = `WITH repave_inserted AS (\n${text}RETURNING 1)\n`;
  if (!mayDropRows) {
    const [row] = await session.rows<{ sent: number; answers: string }>(
      `${inserted}SELECT (SELECT pg_catalog.count(*) FROM repave_inserted)::pg_catalog.float8 AS sent, ${answers} AS answers`,
      values,
    );
    return { sent: row?.sent ?? 0, ...readAnswers(pipeline, asked, row?.answers) };
  }
  // EXPLAIN gives the plan and nothing else: the answers wait in a setting of this transaction.
  const sent = await explainedRows(
    session,
    `${inserted}SELECT pg_catalog.set_config('repave.answers', ${answers}, true)`,
    values,
  );
  const [row] = await session.rows<{ answers: string }>(
    `SELECT pg_catalog.current_setting('repave.answers') AS answers`,
  );
  return { sent, ...readAnswers(pipeline, asked, row?.answers) };
}

/**
 * SQL of one text, what the queries of `sum` checks give and behind them `changed`; absent where there are none. And the
 * parameters of the whole statement: the pipeline's, behind them those of its checks, whose lists each begin with the one before.
 */
function besideRows(
  pipeline: SqlPipeline,
  asked: VersionQuery | undefined,
): { readonly answers?: string; readonly parameters: readonly ParameterName[] } {
  const sums = sumChecks(pipeline);
  const bound = sums.at(-1)?.check.equals.parameters ?? pipeline.query.parameters;
  const version = asked && textBehind(asked.changed.query, bound);
  const all = [
    ...sums.map(({ check }) => sumAnswers(check.equals.text)),
    ...(version ? [versionAnswers(asked, version.text)] : []),
  ];
  return {
    parameters: version?.parameters ?? bound,
    ...(all.length === 0 ? {} : { answers: `pg_catalog.json_build_array(${all.join(', ')})::pg_catalog.text` }),
  };
}

function readAnswers(
  pipeline: SqlPipeline,
  asked: VersionQuery | undefined,
  json: string | undefined,
): Pick<Supplied, 'sums' | 'sourceVersion'> {
  const answers = JSON.parse(json ?? '[]') as (readonly (string | null)[])[];
  const sums = sumChecks(pipeline).map(
    ({ place, check }, i) => [place, oneSum(pipeline, check, answers[i] ?? [])] as const,
  );
  return {
    sums: new Map(sums),
    ...(asked ? { sourceVersion: readVersion(asked, answers[sums.length] ?? []) } : {}),
  };
}

async function insertedRows(session: Session, text: string, values: readonly string[]): Promise<number> {
  return (await session.query(text, values)).rowCount ?? 0;
}

/**
 * Runs the statement and returns how many rows the query of its INSERT gave. Where a trigger may drop rows the INSERT's own
 * count says only how many it kept, so there the server is asked, by EXPLAIN ANALYZE, which runs it all the same.
 */
async function explainedRows(session: Session, text: string, values: readonly string[]): Promise<number> {
  const [explained] = await session.rows<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>(
    `EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, COSTS OFF, FORMAT JSON)\n${text}`,
    values,
  );
  const insert = insertNode(explained?.['QUERY PLAN'][0]?.Plan);
  // That node puts rows into the table; the one below it gives them.
  const source = insert?.Plans?.find((plan) => plan['Parent Relationship'] === 'Outer');
  if (!source) throw new Error('EXPLAIN ANALYZE of the INSERT does not say how many rows its query gave');
  return Math.round(source['Actual Rows'] * source['Actual Loops']);
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly Plans?: readonly PlanNode[];
  readonly 'Parent Relationship'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
}

/** The plan's INSERT: the topmost node, or below the WITH that it stands in. */
function insertNode(plan: PlanNode | undefined): PlanNode | undefined {
  if (!plan || plan['Node Type'] === 'ModifyTable') return plan;
  for (const below of plan.Plans ?? []) {
    const found = insertNode(below);
    if (found) return found;
  }
  return undefined;
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
      `The query of ${pipeline.name}${pipeline.changed ? ', or its `changed`,' : ''} reads its own target ${target.name} through a view or a function. A fill has already deleted the window, so it would read what is not there. Read another table.`,
    );
  }
}
