import { type Command, InvalidArgumentError } from 'commander';
import type { Window } from '../calendar/calendar.js';
import { windowOf } from '../calendar/window.js';
import { Failure } from '../failure.js';
import { loadPipeline } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { type Trial, tryFill } from '../warehouse/try-fill.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabase, withSourceOf } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, duration, instant } from './format.js';
import { Interrupted, interruptible } from './interrupt.js';
import { wholeNumber } from './keys.js';
import type { Output } from './output.js';
import { registeredRivals } from './rivals.js';
import { rowTable } from './row-table.js';

interface TryOptions extends CommonOptions {
  readonly rows: number;
}

const DEFAULT_ROWS = 10;
const MOST_ROWS = 1_000;

/** `repave try`: one partition's whole fill in a transaction that is rolled back. Needs no Temporal, no worker and no ledger. */
export function registerTry(program: Command): void {
  addCommand(program, 'try <pipeline> <key>', {
    summary: 'fill one partition, show what came of it, and roll back',
    examples: ['repave try sales_summary 1997-01-01', 'repave try sales_summary 1997-01-01 --rows 50 --json'],
    after:
      'Runs what a fill runs, by the file as it is here: it reads the source, deletes, inserts, counts and checks, in one\n' +
      'transaction that it then rolls back. Readers of the table see nothing of it; a backfill that comes to the same\n' +
      'partition meanwhile waits. Ctrl-C ends the query and rolls back too. Not undone, since PostgreSQL never does: numbers\n' +
      'taken from sequences and identity columns, and what code of yours does elsewhere.\n\n' +
      'Exits with 0 where a backfill would fill it, 1 where a check or the database says no.',
  })
    .option('--rows <n>', `show the first n of the new rows, at most ${MOST_ROWS}`, rowCount, DEFAULT_ROWS)
    .action(runs(tryPartition));
}

async function tryPartition(
  { settings, output }: Context,
  [name, key]: readonly [string, string],
  { rows }: TryOptions,
): Promise<ExitCode> {
  const pipeline = await loadPipeline(pipelinesFolder(settings), name);
  const window = windowOf(pipeline.partition, key);
  const notes = notesOn(pipeline, window, new Date());
  for (const note of notes) output.say(note);
  try {
    const { trial, rivals } = await interruptible((signal) =>
      withDatabase(settings, pipeline.database, (database) =>
        withSourceOf(settings, pipeline, async (source) => {
          const trial = await tryFill(database, { pipeline, window, source, rows, signal });
          return { trial, rivals: await registeredRivals(database, pipeline, trial.target, trial.scope) };
        }),
      ),
    );
    tellDocument(output, pipeline, window, trial, [...notes, ...rivals]);
    if (!output.json) tellPeople(output, pipeline, window, trial);
    for (const rival of rivals) output.say(output.errorColors.yellow(`! ${rival}`));
    output.say('Rolled back: nothing was changed.');
    return trial.refused || rivals.length > 0 ? EXIT.notWhole : EXIT.done;
  } catch (error) {
    if (error instanceof Interrupted) return tellInterrupted(output, name, key);
    if (error instanceof Failure) throw new Failure(error.type, `${once(error.message)} Nothing was changed.`);
    throw error;
  }
}

/** What a backfill would make of the key, besides filling it. Throws `InvalidInput` for one in the future. */
function notesOn({ name, start }: Pipeline, { key, ...window }: Window, now: Date): string[] {
  if (new Date(window.start) > now) {
    throw new Failure(
      'InvalidInput',
      `${key} of ${name} begins at ${window.start}, in the future: expected one that has begun.`,
    );
  }
  const notes: string[] = [];
  if (new Date(window.end) > now)
    notes.push(
      `${key} is unfinished until ${instant(window.end)}: a backfill leaves it out unless --include-unfinished.`,
    );
  if (start !== undefined && key < start)
    notes.push(`${key} is before the pipeline's start ${start}: a backfill leaves it out.`);
  return notes;
}

function tellDocument(
  output: Output,
  { name }: Pipeline,
  { key, start, end }: Window,
  { refused, steps, columns, rows, target, scope: _scope, ...written }: Trial,
  notes: readonly string[],
): void {
  output.document({
    pipeline: name,
    key,
    window: { start, end },
    target,
    ok: refused === undefined,
    changed: false,
    ...written,
    error: refused && { type: refused.type, message: refused.message },
    seconds: Object.fromEntries(steps.map(({ step, seconds }) => [step, seconds])),
    rows: rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]]))),
    notes,
  });
}

function tellPeople(output: Output, { name, partition }: Pipeline, window: Window, trial: Trial): void {
  const { colors } = output;
  const { deleted, inserted, unchanged, checks, warnings, refused, steps, target } = trial;
  output.result(`${colors.bold(`${name} ${window.key}`)}  in ${target}`);
  output.result(`  ${colors.dim(`${window.start} to ${window.end} (${partition.zone})`)}`);
  output.result(
    unchanged
      ? `  would write nothing: its ${counted(inserted, 'row')} equal those that stand there`
      : `  would delete ${counted(deleted, 'row')} and insert ${counted(inserted, 'row')}`,
  );
  if (trial.sourceVersion !== undefined) output.result(`  version of its source: ${trial.sourceVersion}`);
  for (const { check, passed, severity, seen } of checks) {
    const mark = passed ? colors.green('✓') : severity === 'warn' ? colors.yellow('!') : colors.red('✗');
    output.result(`  ${mark} ${check}: ${seen}`);
  }
  // What a check lets through is said by the check.
  for (const warning of warnings.filter((text) => !text.startsWith('check: ')))
    output.result(`  ${colors.yellow('!')} ${warning}`);
  const times = steps.map(({ step, seconds }) => `${step} ${took(seconds)}`).join(', ');
  output.result(`  ${colors.dim(`${took(steps.reduce((sum, { seconds }) => sum + seconds, 0))}: ${times}`)}`);
  if (trial.rows.length > 0) {
    const { text, leftOut } = rowTable(output, trial.columns, trial.rows);
    output.result(`\n${text}\n`);
    if (inserted > trial.rows.length) output.say(`and ${counted(inserted - trial.rows.length, 'more row')}`);
    if (leftOut.length > 0) output.say(`Too wide for this terminal: ${leftOut.join(', ')}. --json has all columns.`);
  }
  if (refused) output.say(`${output.errorColors.red('✗')} ${refused.message}`);
}

function took(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : duration(seconds);
}

function tellInterrupted(output: Output, name: string, key: string): ExitCode {
  const message = `The trial of ${name} ${key} was interrupted and rolled back: nothing was changed.`;
  output.document({ pipeline: name, key, changed: false, error: { type: 'Interrupted', message } });
  output.say(message);
  return EXIT.interrupted;
}

/** What fills say of what they try again is not so of a trial. */
function once(message: string): string {
  return message.replace(/ It is (tried|asked) again(?=[.;])/, ' Try it again later');
}

function rowCount(text: string): number {
  const count = wholeNumber(text);
  if (count < 0 || count > MOST_ROWS) throw new InvalidArgumentError(`Expected 0 to ${MOST_ROWS}.`);
  return count;
}
