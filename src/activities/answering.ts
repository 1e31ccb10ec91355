import { Context } from '@temporalio/activity';
import { Failure } from '../failure.js';
import { startHeartbeat } from './heartbeat.js';
import type { AttemptNote } from './messages.js';
import { toApplicationFailure } from './to-application-failure.js';

/** An activity that heartbeats, and whose errors leave as {@link toApplicationFailure} says; what Repave does not know is told to the log. */
export function answering<Request, Answer>(
  activity: (request: Request, note: (doing: object) => void) => Promise<Answer>,
): (request: Request) => Promise<Answer> {
  return async (request) => {
    let doing: object = {};
    const heartbeat = startHeartbeat(
      () => ({ attempt: Context.current().info.attempt, ...doing }) satisfies AttemptNote,
    );
    try {
      return await activity(request, (now) => (doing = now));
    } catch (error) {
      const { info, cancellationSignal, log } = Context.current();
      const failure = toApplicationFailure(error, info.attempt, cancellationSignal);
      if ('type' in failure && failure.type === 'Unexpected' && !(error instanceof Failure)) {
        log.error('An activity failed in a way Repave does not know', { at: frames(error) });
      }
      throw failure;
    } finally {
      heartbeat.stop();
    }
  };
}

/** A stack without its first line, which is the message and may hold a row's values. */
function frames(error: unknown): string[] {
  const lines = error instanceof Error ? (error.stack ?? '').split('\n') : [];
  return lines.filter((line) => /^\s+at /.test(line)).map((line) => line.trim());
}
