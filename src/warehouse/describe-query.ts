import type { SqlPipeline } from '../pipeline/pipeline.js';
import { sumAnswers, sumChecks } from './check-sum.js';
import type { Database } from './database.js';
import { judgeChanged } from './judge-changed.js';
import { judgeReady } from './judge-ready.js';
import { lookOnly } from './look-only.js';
import { ask, errorPosition, type PipelineProblem, problemOf } from './pipeline-problem.js';
import { textAlone } from './query-text.js';
import type { Session } from './session.js';
import { readSourceColumns, type SourceColumn } from './source-columns.js';
import { toSourceFailure } from './source-failure.js';

/** What a server makes of a pipeline's query. */
export interface DescribedQuery {
  /** Absent where it could not say. */
  readonly columns?: readonly SourceColumn[];
  readonly problems: readonly PipelineProblem[];
}

/** Has the session's server judge a pipeline's query with its `ready` and its `changed`. `toFailure` says of an error whose it is. */
export async function describeQuery(
  session: Session,
  pipeline: SqlPipeline,
  toFailure: (error: unknown) => unknown = (error) => error,
): Promise<DescribedQuery> {
  const problems = [
    ...(await judgeReady(session, pipeline, toFailure)),
    ...(await judgeChanged(session, pipeline, toFailure)),
  ];
  const { answer, error } = await ask(session, () => readSourceColumns(session, pipeline.query.text));
  if (answer) return { columns: answer, problems };
  const characters = errorPosition(error);
  const place = characters === undefined ? ({ kind: 'select' } as const) : ({ kind: 'query', characters } as const);
  return { problems: [...problems, problemOf(toFailure(error), place)] };
}

/** {@link describeQuery} on the server of a pipeline's `source`, with the queries of its `sum` checks, which run there too. */
export async function describeQueryThere(source: Database, pipeline: SqlPipeline): Promise<DescribedQuery> {
  const toFailure = (error: unknown): unknown => toSourceFailure(error, source, pipeline.name, { beforeRows: true });
  return lookOnly(source, 'repave check', pipeline.partition.zone, async (session) => {
    const { columns, problems } = await describeQuery(session, pipeline, toFailure);
    const ofSums: PipelineProblem[] = [];
    for (const { place, check } of sumChecks(pipeline)) {
      const { error } = await ask(session, () => session.describe(`SELECT ${sumAnswers(textAlone(check.equals))}`));
      if (error !== undefined) ofSums.push(problemOf(toFailure(error), { kind: 'check', index: place }));
    }
    return { columns, problems: [...problems, ...ofSums] };
  });
}
