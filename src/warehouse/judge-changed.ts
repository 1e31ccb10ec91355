import type { SqlPipeline } from '../pipeline/pipeline.js';
import { ask, type PipelineProblem, problemOf, setting } from './pipeline-problem.js';
import type { Session } from './session.js';
import { judgedVersion } from './version-query.js';

/** Has the server where it runs judge a pipeline's `changed`: its query must give one value, and `rows` read tables alone. */
export async function judgeChanged(
  session: Session,
  { name, changed }: SqlPipeline,
  toFailure: (error: unknown) => unknown,
): Promise<PipelineProblem[]> {
  if (!changed) return [];
  const { error } = await ask(session, () => judgedVersion(session, name, changed));
  return error === undefined ? [] : [problemOf(toFailure(error), setting('changed'))];
}
