import type { BackfillFailed, BackfillHandle, Pollers, RepaveClient } from '../client.js';
import type { BackfillResult } from '../contract.js';
import type { Wording } from '../pipeline/input-failure.js';
import type { Context } from './command.js';
import { EXIT, type ExitCode, exitCodeOf, tell } from './exit.js';
import { counted, number, span } from './format.js';
import type { Output } from './output.js';
import { progressView } from './progress-view.js';
import { doneOf, listAllFailed } from './progress-words.js';
import { downstreamResults, resumeDownstream } from './downstream-text.js';
import { ledgerOf } from './ledger-progress.js';
import { sayWaits } from './say-waits.js';
import type { Sight } from './sight.js';
import { sights } from './sights.js';
import { sayIfNoWorker } from './temporal-client.js';
import { workersWordAsTyped } from './typed.js';

/** Children whose attempts stand in a document. */
const SHOWN_TO_PROGRAMS = 20;

export interface FollowOptions {
  /** Told of each sight that differs from the one before, beside what is shown. */
  readonly onSight?: (sight: Sight) => void;
  /** Said before it was started; they stand in its document too. */
  readonly notes?: readonly string[];
  /** How its input was typed here, for what a worker finds wrong with that. */
  readonly typed?: Wording;
}

/**
 * Follows a backfill to its end and writes how it ended. Where no worker answers it goes on by what the ledger has. Ctrl-C
 * stops following, not the backfill, and says how to come back.
 */
export async function follow(
  { settings, output }: Context,
  repave: RepaveClient,
  handle: BackfillHandle,
  { onSight, notes, typed }: FollowOptions = {},
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
  const following = new AbortController();
  const { signal } = following;
  // A live view says it all in its own lines.
  const stopLooking = view.live ? undefined : sayIfNoWorker(view, repave);
  const waits = view.live ? undefined : sayWaits(handle, (text) => view.say(text));
  const toTheEnd = async (): Promise<BackfillResult> => {
    const ended = handle.result({ signal });
    const shown = (): number => (output.json ? SHOWN_TO_PROGRAMS : view.room);
    const pollers = (): Promise<Pollers> => repave.pollers();
    let last = '';
    for await (const sight of sights({ handle, ended, ledger: ledgerOf(settings, id), pollers, shown, signal })) {
      view.show(sight);
      const text = JSON.stringify(sight);
      if (text === last) continue;
      last = text;
      waits?.seen(sight);
      onSight?.(sight);
    }
    return ended;
  };
  try {
    const ended = await Promise.race([toTheEnd(), interrupted]);
    view.end();
    return ended === 'interrupted' ? tellInterrupted(output, run) : tellResult(output, run, ended);
  } catch (error) {
    view.end();
    return isBackfillFailed(error) ? tellFailure(output, run, error, typed) : tellLost(output, run, error);
  } finally {
    following.abort();
    stopLooking?.();
    waits?.stop();
    process.removeListener('SIGINT', interrupt);
  }
}

/** What every document of a followed backfill begins with. */
type FollowedRun = Pick<BackfillHandle, 'id' | 'runId' | 'joined'> & Pick<FollowOptions, 'notes'>;

function tellResult(output: Output, run: FollowedRun, result: BackfillResult): ExitCode {
  output.document({ ...run, result });
  for (const note of result.notes) output.say(note);
  if (result.stopped) {
    output.result(`${output.colors.yellow('■')} ${counts(result)}`);
    for (const line of downstreamResults(result, output.colors)) output.result(line);
    output.say(resumeDownstream(result) ?? fillTheRest(result));
    return EXIT.notWhole;
  }
  output.result(`${output.colors.green('✓')} ${counts(result)}`);
  for (const line of downstreamResults(result, output.colors)) output.result(line);
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

function tellFailure(output: Output, run: FollowedRun, error: BackfillFailed, typed?: Wording): ExitCode {
  const { type, result } = error;
  const message = type === 'InvalidInput' && typed ? workersWordAsTyped(error.message, typed) : error.message;
  output.document({ ...run, result, error: { type, message } });
  const { colors } = output;
  if (!result) {
    output.say(`${output.errorColors.red('✗')} ${type}: ${message}`);
    return exitCodeOf(type);
  }
  const behind = resumeDownstream(result);
  output.result(`${behind === undefined ? colors.red('✗') : colors.green('✓')} ${counts(result)}`);
  for (const line of downstreamResults(result, colors)) output.result(line);
  if (behind !== undefined) {
    output.say(`${output.errorColors.red('✗')} ${message}\n${behind}`);
    return EXIT.notWhole;
  }
  for (const failure of result.failures) output.result(`  ${failure.key}  ${failure.type}: ${failure.message}`);
  const more = result.failed - result.failures.length;
  if (more > 0) output.result(`  and ${number(more)} more: \`${listAllFailed(result.pipeline)}\``);
  // The message says why it was stopped: by whom, by `onFailure`, or since its canary failed.
  output.say(
    result.stopped ? `${message}\n${fillTheRest(result)}` : `Fill what failed again:\n  repave retry ${run.id}`,
  );
  return EXIT.notWhole;
}

/** The command that fills what a stopped backfill has left. */
function fillTheRest({ pipeline, first, last }: Pick<BackfillResult, 'pipeline' | 'first' | 'last'>): string {
  const range = span(first, last);
  return `Fill the rest:\n  repave backfill ${pipeline}${range && ` ${range}`} --only missing,failed,outdated`;
}

function counts(result: BackfillResult): string {
  const { total, filled, failed, skipped, stopped, rows } = result;
  const parts = [
    `${number(filled)} of ${counted(total, 'partition')} filled`,
    failed > 0 ? `${number(failed)} failed` : '',
    skipped > 0 ? `${number(skipped)} skipped` : '',
    counted(rows, 'row'),
    stopped ? `stopped with ${number(total - doneOf(result))} left` : '',
  ];
  return `${`${result.pipeline} ${span(result.first, result.last)}`.trimEnd()}: ${parts.filter((part) => part !== '').join(', ')}`;
}

/** By name: the client's module is loaded only where it is needed. */
export function isBackfillFailed(error: unknown): error is BackfillFailed {
  return error instanceof Error && error.name === 'BackfillFailed';
}
