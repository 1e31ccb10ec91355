import type { BackfillFailed, BackfillHandle, RepaveClient } from '../client.js';
import type { BackfillResult, Progress } from '../contract.js';
import { EXIT, type ExitCode, exitCodeOf, tell } from './exit.js';
import { counted, number, span } from './format.js';
import type { Output } from './output.js';
import { progressView } from './progress-view.js';
import { sayIfNoWorker } from './temporal-client.js';

export interface FollowOptions {
  /** Told of each progress, beside what is shown. */
  readonly onProgress?: (progress: Progress) => void;
  /** Said before it was started; they stand in its document too. */
  readonly notes?: readonly string[];
}

/**
 * Follows a backfill to its end and writes how it ended. Ctrl-C stops following, not the backfill, and says how to come
 * back.
 */
export async function follow(
  output: Output,
  repave: RepaveClient,
  handle: BackfillHandle,
  { onProgress, notes }: FollowOptions = {},
): Promise<ExitCode> {
  let interrupt = (): void => undefined;
  const interrupted = new Promise<'interrupted'>((resolve) => {
    interrupt = () => resolve('interrupted');
  });
  // Not `once`: the live view's own listener, which gives the cursor back, ends the process where it finds no other.
  process.on('SIGINT', interrupt);
  const view = progressView(output);
  const { id, runId, joined } = handle;
  const run = { id, runId, joined, notes };
  const stopLooking = sayIfNoWorker(output, repave);
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
    return ended === 'interrupted' ? tellInterrupted(output, run) : tellResult(output, run, ended);
  } catch (error) {
    view.end();
    if (isBackfillFailed(error)) return tellFailure(output, run, error, view.told);
    return tellLost(output, run, error);
  } finally {
    stopLooking();
    process.removeListener('SIGINT', interrupt);
  }
}

/** What every document of a followed backfill begins with. */
type FollowedRun = Pick<BackfillHandle, 'id' | 'runId' | 'joined'> & Pick<FollowOptions, 'notes'>;

function tellResult(output: Output, run: FollowedRun, result: BackfillResult): ExitCode {
  output.document({ ...run, result });
  for (const note of result.notes) output.say(note);
  output.result(`${output.colors.green('✓')} ${counts(result)}`);
  return EXIT.done;
}

function tellInterrupted(output: Output, run: FollowedRun): ExitCode {
  const error = { type: 'Interrupted', message: 'Following was interrupted; the backfill goes on.' };
  output.document({ ...run, error });
  output.say(`It goes on. End it, or come back to it:\n  repave cancel ${run.id}\n  repave watch ${run.id}`);
  return EXIT.interrupted;
}

/** Following ended, not the backfill: Temporal has gone, or knows no such run. */
function tellLost(output: Output, run: FollowedRun, error: unknown): ExitCode {
  const { exitCode, type, message } = tell(error);
  output.document({ ...run, error: { type, message } });
  output.say(`${output.errorColors.red('✗')} ${message}`);
  if (exitCode === EXIT.unreachable) output.say(`Come back to it:\n  repave watch ${run.id}`);
  return exitCode;
}

function tellFailure(output: Output, run: FollowedRun, error: BackfillFailed, told: ReadonlySet<string>): ExitCode {
  const { type, message, result } = error;
  output.document({ ...run, result, error: { type, message } });
  const { colors } = output;
  if (!result) {
    output.say(`${output.errorColors.red('✗')} ${type}: ${message}`);
    return exitCodeOf(type);
  }
  output.result(`${colors.red('✗')} ${counts(result)}`);
  // On a terminal they stand above already, where the live view put them.
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
  return `${`${result.pipeline} ${span(result.first, result.last)}`.trimEnd()}: ${parts.filter((part) => part !== '').join(', ')}`;
}

/** By name: the client's module is loaded only where it is needed. */
export function isBackfillFailed(error: unknown): error is BackfillFailed {
  return error instanceof Error && error.name === 'BackfillFailed';
}
