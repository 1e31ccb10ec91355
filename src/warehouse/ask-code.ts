import type { Window } from '../calendar/calendar.js';
import type { RowsContext } from '../pipeline/pipeline.js';
import { abortable } from './abortable.js';
import { type PipelineCall, sourceFailure, strayFailure } from './rows-failure.js';
import { SourceBeingRead } from './source-being-read.js';

/**
 * What a function of a pipeline answers for a window, unjudged. Throws `SourceFailed` where the code throws, also where no call
 * of ours can catch it; rejects with the signal's reason, without waiting for the code, once that is aborted.
 */
export async function askCode(
  code: (context: RowsContext) => unknown,
  call: PipelineCall,
  { pipeline, window, signal }: { readonly pipeline: string; readonly window: Window; readonly signal: AbortSignal },
): Promise<unknown> {
  const { key, start, end, date, endDate } = window;
  signal.throwIfAborted();
  let interrupt: (reason: Error) => void = () => undefined;
  const interrupted = new Promise<never>((_, reject) => (interrupt = reject));
  const reading = new SourceBeingRead((error) => interrupt(strayFailure(pipeline, key, error)));
  try {
    // An async function, so that one that throws at once rejects like one that throws later.
    const asked = reading.run(async () => code({ key, window: { start, end, date, endDate }, signal }));
    return await abortable(
      Promise.race([
        asked.catch((error: unknown) => {
          throw sourceFailure(pipeline, key, error, call);
        }),
        interrupted,
      ]),
      signal,
    );
  } finally {
    reading.end();
  }
}
