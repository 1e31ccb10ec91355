import { type Command, Option } from 'commander';
import type { BackfillHandle, RepaveClient } from '../client.js';
import { MAX_CONCURRENCY, ON_BUSY, ON_FAILURE } from '../contract.js';
import { Failure } from '../failure.js';
import type { Wording } from '../pipeline/input-failure.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { EXIT, type ExitCode } from './exit.js';
import { follow } from './follow.js';
import { wholeNumber } from './keys.js';
import { otherVersionOf } from './other-version.js';
import { showPlan } from './plan.js';
import type { Output } from './output.js';
import { selection, type SelectionOptions, selectionWording, withSelection } from './selection.js';
import { noWorker, withClient } from './temporal-client.js';
import { asTyped } from './typed.js';

interface BackfillOptions extends CommonOptions, SelectionOptions {
  readonly concurrency?: number;
  readonly priority?: number;
  readonly onBusy?: string;
  readonly plan?: string;
  readonly canary?: number;
  readonly onFailure?: string;
  readonly maxFailures?: number;
  readonly id?: string;
  readonly detach?: boolean;
  readonly dryRun?: boolean;
}

/** `repave backfill`: starts a backfill, or joins the same one where it runs already, and follows it to its end. */
export function registerBackfill(program: Command): void {
  const command = addCommand(program, 'backfill <pipeline> [keys...]', {
    summary: 'fill partitions, and follow it to the end',
    examples: [
      'repave backfill sales_summary 2024-02-29 2024-03-01..2024-03-31',
      'repave backfill sales_summary --only missing,failed --detach',
      'repave backfill sales_summary --only outdated --canary 3 --on-failure pause',
    ],
    after:
      'Ctrl-C stops following, not the backfill; `repave cancel` stops that.\n' +
      'Exits with 0 where all is filled, 1 where some failed or it was cancelled, 2 where nothing was begun: the request is wrong, or\n' +
      '--plan is another by now.',
  });
  withTemporal(withSelection(command))
    .option(
      '--concurrency <n>',
      `partitions at once, 1 to ${MAX_CONCURRENCY} (default: the pipeline's, else 4)`,
      wholeNumber,
    )
    .option('--priority <n>', '1 (first) to 5 (last) among all that waits for a worker (default: 3)', wholeNumber)
    .addOption(
      new Option('--on-busy <what>', `a partition that another run fills: ${ON_BUSY.join(', ')} (default: wait)`),
    )
    .option(
      '--plan <id>',
      'fill exactly the plan that `repave plan` gave this id; where it is another by now, nothing is begun',
    )
    .option('--canary <n>', 'fill the first n alone, and go on only if they all succeed', wholeNumber)
    .addOption(
      new Option('--on-failure <what>', `once partitions have failed: ${ON_FAILURE.join(', ')} (default: continue)`),
    )
    .option('--max-failures <n>', 'how many must have failed for --on-failure pause or stop (default: 1)', wholeNumber)
    .option('--id <workflow-id>', "the workflow's id (default: named for what it fills)")
    .option('--detach', 'start it and come back at once')
    .option('--dry-run', 'say what would be filled, start nothing: the same as `repave plan`')
    .action(
      runs<readonly [string, readonly string[]], BackfillOptions>(async (context, given, options) => {
        const typed = selectionWording(given[1], options);
        return asTyped(typed, () => backfill(context, given, options, typed));
      }),
    );
}

async function backfill(
  context: Context,
  [pipeline, keys]: readonly [string, readonly string[]],
  options: BackfillOptions,
  typed: Wording,
): Promise<ExitCode> {
  const { settings, output } = context;
  const { concurrency, priority, onBusy, plan, canary, onFailure, maxFailures } = options;
  const policy = Object.entries({ concurrency, priority, onBusy, plan, canary, onFailure, maxFailures }).filter(
    ([, value]) => value !== undefined,
  );
  const input = parseBackfillInput({ pipeline, ...selection(keys, options), ...Object.fromEntries(policy) }, []);
  if (options.dryRun) return showPlan(context, input);

  if (options.id?.trim() === '') throw new Failure('InvalidInput', '--id is empty: expected a workflow id, or none.');

  return withClient(settings, async (repave) => {
    const other = await otherVersionOf(settings, pipeline);
    const notes = other === undefined ? [] : [other];
    for (const note of notes) output.say(note);
    const handle = await repave.backfill(input, options.id === undefined ? {} : { id: options.id });
    output.say(`${handle.joined ? 'Joined' : 'Started'} ${handle.id}`);
    return options.detach ? leave(output, repave, handle, notes) : follow(context, repave, handle, { notes, typed });
  });
}

export async function leave(
  output: Output,
  repave: RepaveClient,
  { id, runId, joined }: BackfillHandle,
  notes: readonly string[],
): Promise<ExitCode> {
  const said = await noWorker(repave);
  if (said !== undefined) output.say(said);
  output.document({ id, runId, joined, notes });
  output.result(id);
  output.say(`Come back to it with \`repave watch ${id}\`.`);
  return EXIT.done;
}
