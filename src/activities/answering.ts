import { Context } from '@temporalio/activity';
import { Failure } from '../failure.js';
import { toApplicationFailure } from './to-application-failure.js';

/** An activity whose errors leave as {@link toApplicationFailure} says; what Repave does not know is told to the log. */
export function answering<Request, Answer>(
  activity: (request: Request) => Promise<Answer>,
): (request: Request) => Promise<Answer> {
  return async (request) => {
    try {
      return await activity(request);
    } catch (error) {
      const { info, cancellationSignal, log } = Context.current();
      const failure = toApplicationFailure(error, info.attempt, cancellationSignal);
      if ('type' in failure && failure.type === 'Unexpected' && !(error instanceof Failure)) {
        log.error('An activity failed in a way Repave does not know', { at: frames(error) });
      }
      throw failure;
    }
  };
}

/** A stack without its first line, which is the message and may hold a row's values. */
function frames(error: unknown): string[] {
  const lines = error instanceof Error ? (error.stack ?? '').split('\n') : [];
  return lines.filter((line) => /^\s+at /.test(line)).map((line) => line.trim());
}
