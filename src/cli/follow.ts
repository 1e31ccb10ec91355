import type { BackfillFailed, BackfillHandle, RepaveClient } from '../client.js';
import type { BackfillResult, Progress } from '../contract.js';
import { EXIT, type ExitCode, exitCodeOf } from './exit.js';
import { counted, number, span } from './format.js';
import type { Output } from './output.js';
import { progressView } from './progress-view.js';
import { noWorker } from './temporal-client.js';

/** Milliseconds after which it is said that no worker polls. */
const WORKER_WAIT_MS = 5_000;

export interface FollowOptions {
  /** Told of each progress, beside what is shown. */
  readonly onProgress?: (progress: Progress) => void;
}

/**
 * Follows a backfill to its end and writes how it ended. Ctrl-C stops following, not the backfill, and says how to come
 * back.
 */
export async function follow(
  output: Output,
  repave: RepaveClient,
  handle: BackfillHandle,
  { onProgress }: FollowOptions = {},
): Promise<ExitCode> {
  let interrupt = (): void => undefined;
  const interrupted = new Promise<'interrupted'>((resolve) => {
    interrupt = () => resolve('interrupted');
  });
  // Not `once`: the live view's own listener, which gives the cursor back, ends the process where it finds no other.
  process.on('SIGINT', interrupt);
  const view = progressView(output);
  const lookForWorker = setTimeout(() => {
    noWorker(repave).then(
      (said) => said !== undefined && output.say(said),
      // Following itself shows where Temporal is gone.
      () => undefined,
    );
  }, WORKER_WAIT_MS);
  const toTheEnd = async (): Promise<BackfillResult> => {
    for await (const progress of handle.follow()) {
      onProgress?.(progress);
      view.show(progress);
    }
    return handle.result();
  };
  try {
    const ended = await Promise.race([toTheEnd(), interrupted]);
    view.end();
    return ended === 'interrupted' ? tellInterrupted(output, handle) : tellResult(output, handle, ended);
  } catch (error) {
    view.end();
    if (isBackfillFailed(error)) return tellFailure(output, handle, error, view.told);
    throw error;
  } finally {
    clearTimeout(lookForWorker);
    process.removeListener('SIGINT', interrupt);
  }
}

function tellResult(output: Output, { id, runId, joined }: BackfillHandle, result: BackfillResult): ExitCode {
  output.document({ id, runId, joined, result });
  for (const note of result.notes) output.say(note);
  output.result(`${output.colors.green('✓')} ${counts(result)}`);
  return EXIT.done;
}

function tellInterrupted(output: Output, { id, runId, joined }: BackfillHandle): ExitCode {
  output.document({
    id,
    runId,
    joined,
    error: { type: 'Interrupted', message: 'Following was interrupted; the backfill goes on.' },
  });
  output.say(`It goes on. End it, or come back to it:\n  repave cancel ${id}\n  repave watch ${id}`);
  return EXIT.interrupted;
}

function tellFailure(
  output: Output,
  { id, runId, joined }: BackfillHandle,
  error: BackfillFailed,
  told: ReadonlySet<string>,
): ExitCode {
  const { type, message, result } = error;
  output.document({ id, runId, joined, result, error: { type, message } });
  const { colors } = output;
  if (!result) {
    output.say(`${output.errorColors.red('✗')} ${type}: ${message}`);
    return exitCodeOf(type);
  }
  output.result(`${colors.red('✗')} ${counts(result)}`);
  // On a terminal they stand above already, where the view put them.
  const untold = result.failures.filter(({ key }) => !output.interactive || !told.has(key));
  for (const failure of untold) output.result(`  ${failure.key}  ${failure.type}: ${failure.message}`);
  const more = result.failed - result.failures.length;
  if (more > 0) output.result(`  and ${number(more)} more: \`repave status ${result.pipeline}\``);
  const range = span(result.first, result.last);
  output.say(`Fill what failed again:\n  repave backfill ${result.pipeline}${range && ` ${range}`} --only failed`);
  return EXIT.notWhole;
}

function counts(result: BackfillResult): string {
  const parts = [
    `${number(result.filled)} of ${counted(result.total, 'partition')} filled`,
    result.failed > 0 ? `${number(result.failed)} failed` : '',
    result.skipped > 0 ? `${number(result.skipped)} skipped` : '',
    counted(result.rows, 'row'),
  ];
  return `${result.pipeline} ${span(result.first, result.last)}: ${parts.filter((part) => part !== '').join(', ')}`;
}

/** By name: the client's module is loaded only where it is needed. */
function isBackfillFailed(error: unknown): error is BackfillFailed {
  return error instanceof Error && error.name === 'BackfillFailed';
}
