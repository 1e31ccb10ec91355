import type { Window } from '../calendar/calendar.js';
import { newestFinished } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import { Failure } from '../failure.js';
import { judgeQuery } from '../pipeline/judge-query.js';
import type { Pipeline, Scope, SqlPipeline } from '../pipeline/pipeline.js';
import { type DeletePlan, deleteWarning, planDelete } from './delete-index.js';
import { sqlstate } from './errors.js';
import { refuseSelfRead } from './insert.js';
import { judgeChecks } from './judge-checks.js';
import { missingParts } from './missing-parts.js';
import { parameterValues } from './parameter-values.js';
import { ask, type PipelineProblem, type PipelineWarning, problemOf, setting } from './pipeline-problem.js';
import { type SampleFill, sampleFill } from './sample-fill.js';
import { canonicalScope } from './scope.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import { windowCondition } from './window-condition.js';

/** What the server makes of a fill's statements and checks. */
export interface DescribedFill {
  readonly scope?: Scope;
  readonly problems: readonly PipelineProblem[];
  readonly warnings: readonly PipelineWarning[];
  readonly deletes?: DeletePlan;
  readonly sample: SampleFill;
}

/** Has the server judge a pipeline's checks and scope, and plan what a fill of its newest partition does to the target. */
export async function describeFill(
  session: Session,
  pipeline: Pipeline,
  target: Target,
  written: readonly string[] | undefined,
): Promise<DescribedFill> {
  const problems: PipelineProblem[] = [];
  const warnings: PipelineWarning[] = [];
  const window = sampleWindow(pipeline);
  for (const [index, check] of pipeline.checks.entries()) {
    const { error } = await ask(session, () => judgeChecks(session, { ...pipeline, checks: [check] }, target));
    if (error !== undefined) problems.push(problemOf(error, { kind: 'check', index }));
  }
  const { answer: scope, error } = await ask(session, () => canonicalScope(session, pipeline, target));
  if (error !== undefined) problems.push(problemOf(error, setting('scope')));
  const condition = windowCondition({ ...pipeline, scope }, target, window);
  const deletes = await ask(session, () => planDelete(session, condition));
  if (deletes.answer) {
    const slow = deleteWarning(deletes.answer, pipeline.partition.column);
    if (slow) warnings.push(slow);
  } else if (sqlstate(deletes.error) === '42501') {
    // Whoever checks need not be the role that fills. Of a table that is refused the server may say more, which adds nothing.
    warnings.push({ message: problemOf(deletes.error, setting('target')).message, place: setting('target') });
  }
  problems.push(...unscoped(pipeline, target, written));
  if (pipeline.create) {
    const { error: unfit } = await ask(session, () => missingParts(session, pipeline, target, window));
    if (unfit !== undefined) problems.push(problemOf(unfit, setting('create')));
  } else if (deletes.answer?.tables.length === 0) {
    const message = `No part of ${target.name} takes the rows of ${window.key}: until there is one, a fill of it fails. With \`create: true\` a fill makes it.`;
    warnings.push({ message, place: setting('target') });
  }
  if (pipeline.kind === 'sql' && pipeline.source === undefined) {
    const hidden = await hiddenSelfRead(session, pipeline, target, window);
    if (hidden) problems.push(hidden);
  }
  return {
    scope,
    problems,
    warnings,
    deletes: deletes.answer,
    sample: sampleFill(pipeline, target, window, condition, written),
  };
}

/** A column of the scope that no row would have a value in: the rows would lie outside. */
function unscoped({ scope = {} }: Pipeline, target: Target, written: readonly string[] | undefined): PipelineProblem[] {
  if (!written) return [];
  return Object.keys(scope)
    .filter((name) => !written.includes(name))
    .filter((name) => target.columns.some((column) => column.name === name && !column.hasDefault && !column.generated))
    .map((name) => ({
      type: 'RowsOutsideWindow',
      message: `The column ${JSON.stringify(name)} of the scope is not given, so every row would lie outside it. Add it to the rows.`,
      place: setting('scope', name),
    }));
}

/** Whether the query reads its target through a view, which its text does not tell: planning it locks what it would read. */
async function hiddenSelfRead(
  session: Session,
  pipeline: SqlPipeline,
  target: Target,
  window: Window,
): Promise<PipelineProblem | undefined> {
  const { text, parameters } = pipeline.query;
  const { problems } = await judgeQuery(text, pipeline.target);
  if (problems.length > 0) return undefined;
  const { error } = await ask(session, async () => {
    await session.query(`EXPLAIN ${text}\n`, parameterValues(parameters, window));
    await refuseSelfRead(session, pipeline, target);
  });
  // What the server says of the query it has said before.
  return error instanceof Failure ? problemOf(error, { kind: 'select' }) : undefined;
}

/** The newest partition that has ended, or the first there can be. */
function sampleWindow({ partition, start }: Pipeline): Window {
  const newest = windowOf(partition, newestFinished(partition, new Date().toISOString()));
  const first = start === undefined ? undefined : windowOf(partition, start);
  return first && first.number > newest.number ? first : newest;
}
