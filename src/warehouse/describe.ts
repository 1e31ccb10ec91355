import type { Pipeline, Scope } from '../pipeline/pipeline.js';
import { queryColumns } from '../pipeline/query-columns.js';
import { castKinds } from './cast-kinds.js';
import { compareNames, type ComparedColumn, lossWarning } from './compare-columns.js';
import type { Database } from './database.js';
import type { DeletePlan } from './delete-index.js';
import { describeFill } from './describe-fill.js';
import { describeQuery, type DescribedQuery, describeQueryThere } from './describe-query.js';
import { type FreshColumn, columnsLeftToTheTable, freshWarnings } from './fresh-values.js';
import { judgeInsert, judgeRelayed } from './judge-types.js';
import { lookOnly } from './look-only.js';
import { type PipelineProblem, type PipelineWarning, problemOf, setting } from './pipeline-problem.js';
import type { SampleFill } from './sample-fill.js';
import type { Session } from './session.js';
import { examineTarget, type ExaminedTarget, type TargetColumn } from './target.js';

/** A pipeline held against the live database. */
export interface PipelineDescription {
  /** The target's full name; absent where it is not there. */
  readonly target?: string;
  readonly targetColumns: readonly TargetColumn[];
  /** Columns that a fill writes; absent where they are not known: a TypeScript pipeline may leave them to its first row. */
  readonly written?: readonly string[];
  /** The query's columns beside the target's. */
  readonly columns: readonly ComparedColumn[];
  /** Columns that the table gives a value. */
  readonly left: readonly FreshColumn[];
  /** The pipeline's scope with each value in its one text. */
  readonly scope?: Scope;
  readonly problems: readonly PipelineProblem[];
  readonly warnings: readonly PipelineWarning[];
  /** How the server would find a partition's old rows. */
  readonly deletes?: DeletePlan;
  /** What a fill of one partition, the newest finished, would send. */
  readonly sample?: SampleFill;
}

/**
 * Has the server judge a pipeline as a fill would, and finds all that is wrong; in a read-only transaction that is rolled back:
 * no row is read or written. `source` is where the query of a pipeline with a `source` runs; without it, that query is not judged.
 *
 * Throws `DatabaseUnavailable`, `Conflict`, `TimedOut`: what says nothing of the pipeline.
 */
export async function describePipeline(
  database: Database,
  pipeline: Pipeline,
  source?: Database,
): Promise<PipelineDescription> {
  const elsewhere = pipeline.kind === 'sql' && pipeline.source !== undefined;
  const given = elsewhere ? (source ? await describeQueryThere(source, pipeline) : { problems: [] }) : undefined;
  return lookOnly(database, 'repave check', pipeline.partition.zone, (session) => describeIn(session, pipeline, given));
}

async function describeIn(
  session: Session,
  pipeline: Pipeline,
  elsewhere: DescribedQuery | undefined,
): Promise<PipelineDescription> {
  const { table, problems: refused, partitionProblem } = await examineTarget(session, pipeline);
  const problems = refused.map((failure) => problemOf(failure, setting('target')));
  if (partitionProblem) problems.push(problemOf(partitionProblem, setting('partition', 'column')));
  const given = pipeline.kind === 'sql' ? (elsewhere ?? (await describeQuery(session, pipeline))) : undefined;
  problems.push(...(given?.problems ?? []));
  if (!table) return { targetColumns: [], columns: unplaced(given), left: [], problems, warnings: [] };
  const rows = await describeRows(session, pipeline, table, given);
  const rest = table.partitionType
    ? await describeFill(session, pipeline, { ...table, partitionType: table.partitionType }, rows.written)
    : undefined;
  const left = rows.written ? await columnsLeftToTheTable(session, table, rows.written) : [];
  return {
    target: table.name,
    targetColumns: table.columns,
    written: rows.written,
    columns: rows.columns,
    left,
    ...rest,
    problems: [...problems, ...rows.problems, ...(rest?.problems ?? [])],
    warnings: [...rows.warnings, ...freshWarnings(left, table.name), ...(rest?.warnings ?? [])],
  };
}

function unplaced(given: DescribedQuery | undefined): ComparedColumn[] {
  return (given?.columns ?? []).map(({ name, type }) => ({ name, type }));
}

interface DescribedRows {
  readonly written?: readonly string[];
  readonly columns: readonly ComparedColumn[];
  readonly problems: readonly PipelineProblem[];
  readonly warnings: readonly PipelineWarning[];
}

type ExaminedTable = NonNullable<ExaminedTarget['table']>;

async function describeRows(
  session: Session,
  pipeline: Pipeline,
  table: ExaminedTable,
  given: DescribedQuery | undefined,
): Promise<DescribedRows> {
  const { column } = pipeline.partition;
  if (pipeline.kind === 'typescript') {
    if (!pipeline.columns) return { columns: [], problems: [], warnings: [] };
    const named = pipeline.columns.map((name) => ({ name }));
    const { problems } = compareNames(named, table, column, { columns: [], line: 1 });
    return { written: pipeline.columns, columns: [], problems, warnings: [] };
  }
  const selected = await queryColumns(pipeline.query.text);
  if (!given?.columns) {
    // The query is wrong elsewhere, or nobody could be asked: what its text names can be told all the same.
    const names = selected.columns.map(({ name }) => name);
    if (names.length === 0 || selected.columns.some(({ name, star }) => star || name === undefined))
      return { columns: [], problems: [], warnings: [] };
    const named = names.map((name) => ({ name: name ?? '' }));
    return { columns: [], problems: compareNames(named, table, column, selected).problems, warnings: [] };
  }
  const { columns } = given;
  const { pairs, problems } = compareNames(columns, table, column, selected);
  const unfit =
    pipeline.source === undefined
      ? await judgeInsert(session, pipeline, pairs, columns.length)
      : await judgeRelayed(session, pipeline, table, pairs, columns.length);
  const isUnfit = (index: number): boolean =>
    unfit.some(({ place }) => place.kind === 'column' && place.index === index);
  const kinds = await castKinds(session, table, pairs);
  const compared = columns.map(({ name, type }, index): ComparedColumn => {
    const place = pairs.findIndex((pair) => pair.index === index);
    const pair = pairs[place];
    if (!pair) return { name, type };
    const shown = pair.selected?.literal === undefined ? type : 'unknown';
    return { name, type: shown, targetType: pair.into.type, ...(isUnfit(index) ? {} : { cast: kinds[place] }) };
  });
  const losses = pairs
    .filter((pair) => pair.selected?.literal === undefined && !isUnfit(pair.index))
    .map((pair) => lossWarning(pair, columns.length))
    .filter((warning) => warning !== undefined);
  return {
    written: columns.map(({ name }) => name),
    columns: compared,
    problems: [...problems, ...unfit],
    warnings: losses,
  };
}
