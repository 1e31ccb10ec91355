import type { SqlPipeline } from '../pipeline/pipeline.js';
import { ask, type PipelineProblem, problemOf, setting } from './pipeline-problem.js';
import type { Session } from './session.js';

/** The driver's number of the type boolean. */
const BOOLEAN = 16;

/** Has the server where it runs judge the query of a pipeline's `ready`: it must give one boolean. */
export async function judgeReady(
  session: Session,
  { name, ready }: SqlPipeline,
  toFailure: (error: unknown) => unknown,
): Promise<PipelineProblem[]> {
  if (!ready) return [];
  const { answer, error } = await ask(session, () => session.describe(ready.query.text));
  if (!answer) return [problemOf(toFailure(error), setting('ready'))];
  if (answer.length === 1 && answer[0]?.typeId === BOOLEAN) return [];
  const gives = answer.length === 1 ? 'a value of another type' : `${answer.length} columns`;
  const message = `The query \`ready\` of ${name} gives ${gives}: expected one boolean, such as SELECT EXISTS (…).`;
  return [{ type: 'InvalidPipeline', message, place: setting('ready') }];
}
