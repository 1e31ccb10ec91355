import { Context } from '@temporalio/activity';
import { Failure } from '../failure.js';
import { stackFrames } from '../telemetry/redacted-error.js';
import { startHeartbeat } from './heartbeat.js';
import type { AttemptNote } from './messages.js';
import { toApplicationFailure, withinAttempts } from './to-application-failure.js';

/** Where failures that count are counted: by the fill's claim in the ledger, or, for what makes none, by its attempts. */
type CountedBy = 'claim' | 'attempts';

/**
 * An activity that heartbeats, and whose errors leave as {@link toApplicationFailure} says. What Repave does not know, the log
 * tells. `also`: what each note of an attempt says.
 */
export function answering<Request, Answer>(
  countedBy: CountedBy,
  activity: (request: Request, note: (doing: object) => void) => Promise<Answer>,
  also: Pick<AttemptNote, 'notifies'> = {},
): (request: Request) => Promise<Answer> {
  return async (request) => {
    const { info, cancellationSignal, log } = Context.current();
    const note: AttemptNote = { attempt: info.attempt, ...also };
    let doing: object = {};
    const heartbeat = startHeartbeat(() => ({ ...note, ...doing }));
    try {
      return await activity(request, (now) => (doing = now));
    } catch (error) {
      if (!(error instanceof Failure)) {
        const failure = toApplicationFailure(error, note, cancellationSignal);
        if ('type' in failure && failure.type === 'Unexpected') {
          log.error('An activity failed in a way Repave does not know', { at: stackFrames(error) });
        }
        throw failure;
      }
      const failure = countedBy === 'claim' ? error : withinAttempts(error, info.attempt);
      throw toApplicationFailure(failure, note, cancellationSignal);
    } finally {
      heartbeat.stop();
    }
  };
}
