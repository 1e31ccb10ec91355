import pg from 'pg';
import type { SqlPipeline } from '../pipeline/pipeline.js';
import type { ColumnPair } from './compare-columns.js';
import { quoted, quotedList, quotedTable } from './identifier.js';
import { ask, errorPosition, type PipelineProblem, problemOf } from './pipeline-problem.js';
import { planRelay } from './relay-columns.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/**
 * Has the server parse the INSERT that a fill runs, and where it refuses that, the INSERT of each column alone: every column
 * whose type has no cast that an INSERT makes by itself. Where none is to blame, what the server said of the whole.
 */
export async function judgeInsert(
  session: Session,
  pipeline: SqlPipeline,
  pairs: readonly ColumnPair[],
  of: number,
): Promise<PipelineProblem[]> {
  const list = quotedList(pairs.map(({ column }) => column.name));
  const before = `INSERT INTO ${quotedTable(pipeline.target)} (${list})\n`;
  // Columns that have no place in the target make it another statement, which the server would refuse for that alone.
  const whole =
    pairs.length === of ? await ask(session, () => session.describe(`${before}${pipeline.query.text}\n`)) : undefined;
  if (whole && whole.error === undefined) return [];
  const problems = await judgeColumns(session, pipeline, pairs, of);
  if (!whole || problems.length > 0) return problems;
  const at = errorPosition(whole.error);
  const characters = at === undefined ? -1 : at - [...before].length;
  return [problemOf(whole.error, characters >= 0 ? { kind: 'query', characters } : { kind: 'select' })];
}

/**
 * Asks of each column of a query that runs on another server how its values would come over, as a fill does: every one whose
 * type cannot.
 */
export async function judgeRelayed(
  session: Session,
  pipeline: SqlPipeline,
  target: Pick<Target, 'name'>,
  pairs: readonly ColumnPair[],
  of: number,
): Promise<PipelineProblem[]> {
  const problems: PipelineProblem[] = [];
  for (const { index, column, into, selected } of pairs) {
    // The one column is held against a table of just that.
    const alone = { name: target.name, columns: [{ ...into, notNull: false }] };
    const ofIt = { name: pipeline.name, partition: { column: into.name } };
    const isLiteral = (): Promise<boolean> => Promise.resolve(selected?.literal !== undefined);
    const { error } = await ask(session, () =>
      planRelay(session, pipeline.query.text, isLiteral, [column], ofIt, alone, quotedTable(pipeline.target)),
    );
    if (error !== undefined) problems.push(problemOf(error, { kind: 'column', index, of, name: column.name }));
  }
  return problems;
}

/** Each column alone: NULL of the query's type, or the bare text that the query has there. */
async function judgeColumns(
  session: Session,
  pipeline: SqlPipeline,
  pairs: readonly ColumnPair[],
  of: number,
): Promise<PipelineProblem[]> {
  const problems: PipelineProblem[] = [];
  for (const { index, column, into, selected } of pairs) {
    const value = selected?.literal ?? `NULL::${column.type}`;
    const { error } = await ask(session, () =>
      session.describe(`INSERT INTO ${quotedTable(pipeline.target)} (${quoted(into.name)}) SELECT ${value}`),
    );
    if (!(error instanceof pg.DatabaseError) || !isOfTypes(error.code)) continue;
    const message =
      selected?.literal === undefined
        ? `The query gives ${JSON.stringify(column.name)} as ${column.type}, and the column is of type ${into.type}: an INSERT makes no such cast by itself. Cast it in the query, such as CAST(… AS ${into.type}), or mend the table.`
        : `The query gives ${JSON.stringify(column.name)} a text that the column’s type ${into.type} cannot read. Mend it.`;
    problems.push({ type: 'SchemaMismatch', message, place: { kind: 'column', index, of, name: column.name } });
  }
  return problems;
}

/** Whether the server refuses a value for its type: another refusal, such as of a type that cannot be named, blames no column. */
function isOfTypes(code: string | undefined): boolean {
  return code === '42804' || code === '42846' || code?.startsWith('22') === true;
}
