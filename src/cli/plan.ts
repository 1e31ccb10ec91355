import type { Command } from 'commander';
import type { BackfillInput } from '../contract.js';
import { Failure } from '../failure.js';
import { exactInput } from '../plan/exact-input.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { planChange } from '../plan/plan-changed.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { EXIT, type ExitCode, exitCodeOf } from './exit.js';
import { wholeNumber } from './keys.js';
import type { Output } from './output.js';
import { comparePlan } from './plan-against.js';
import { csvListing, jsonListing, linesListing, type Listing, SCREEN_SIZE, screenListing } from './plan-listing.js';
import { planRequest } from './plan-request.js';
import { downstreamDocument, downstreamLines } from './downstream-text.js';
import { backfillCommand, estimateOf, estimateText, summaryText } from './plan-text.js';
import { selection, type SelectionOptions, selectionWording, withSelection } from './selection.js';
import { asTyped } from './typed.js';

interface PlanOptions extends CommonOptions, SelectionOptions {
  readonly page?: number;
  readonly all?: boolean;
  readonly csv?: boolean;
  readonly against?: string;
}

/** `repave plan`: exactly which partitions a backfill would fill, and why. Writes nothing and needs no Temporal. */
export function registerPlan(program: Command): void {
  const command = addCommand(program, 'plan <pipeline> [keys...]', {
    summary: 'say what a backfill would fill and why; write nothing',
    examples: [
      'repave plan sales_summary --from 1997-01-01 --to 1997-01-31',
      'repave plan sales_summary 1997-01-15.. --only missing,failed',
      'repave plan sales_summary --only outdated --json > plan.json',
      'repave plan sales_summary --against plan.json',
    ],
    after:
      'Keys stand as plain arguments too: 2024-02-29 2024-03-01..2024-03-31. Both ends of a range are included.\n' +
      'With --against it exits with 0 where the plan is the same, 1 where it differs.',
  });
  withSelection(command)
    .option('--page <k>', `on a terminal, the k-th ${SCREEN_SIZE} partitions (default: 1)`, wholeNumber)
    .option('--all', 'on a terminal, all partitions')
    .option('--csv', 'write the partitions as CSV: key,reason,rows,filled_at')
    .option(
      '--against <file>',
      'say what differs from a plan kept with --json (- for standard input); its partitions are asked for where none are named',
    )
    .action(
      runs<readonly [string, readonly string[]], PlanOptions>(async (context, [pipeline, keys], options) => {
        const asked = { pipeline, ...selection(keys, options) };
        return asTyped(selectionWording(keys, options), async () => {
          if (options.against !== undefined) return comparePlan(context, asked, options.against, options);
          return showPlan(context, parseBackfillInput(asked, []), options);
        });
      }),
    );
}

/**
 * Plans a request against the ledger and writes the plan out. Where the request names a plan that is not today's, it says so as
 * `PlanChanged`.
 */
export async function showPlan(
  { settings, output }: Context,
  input: BackfillInput,
  options: Pick<PlanOptions, 'page' | 'all' | 'csv'> = {},
): Promise<ExitCode> {
  const listing = listingFor(output, input.pipeline, options);
  const planned = await planRequest(settings, input, (page) => listing.take(page));
  const { id, first, last, total, counts, notes } = planned.plan;
  const exact = exactInput(input, planned.plan);
  const estimate = estimateOf(input, planned);
  const change = input.plan === undefined ? undefined : planChange(input.plan, planned.plan);
  const error = change && { type: change.type, message: change.message };
  const downstream = planned.downstream?.map(downstreamDocument);
  const said = { id, first, last, total, counts, estimate: estimate ?? null, notes, downstream };
  await listing.end({ ...said, input: exact, error });

  output.say(summaryText(planned));
  for (const note of notes) output.say(note);
  for (const line of downstreamLines(planned)) output.say(line);
  if (change) {
    output.say(`${output.errorColors.red('✗')} ${change.message}`);
    return exitCodeOf(change.type);
  }
  if (total === 0) return EXIT.done;
  output.say(estimateText(estimate));
  output.say(`Plan ${id}. Fill exactly this:\n  ${backfillCommand(exact)}`);
  return EXIT.done;
}

function listingFor(
  output: Output,
  pipeline: string,
  { page, all, csv }: Parameters<typeof showPlan>[2] = {},
): Listing {
  const [one, other] = [output.json && '--json', csv && '--csv', page !== undefined && '--page', all && '--all'].filter(
    Boolean,
  );
  if (other) throw new Failure('InvalidInput', `${one} and ${other} are given: expected one of them.`);
  if (page !== undefined && page < 1)
    throw new Failure('InvalidInput', `--page is ${page}: expected a number from 1 on.`);
  if (output.json) return jsonListing(output, pipeline);
  if (csv) return csvListing(output);
  if (page !== undefined || (output.interactive && !all)) return screenListing(output, page ?? 1);
  return linesListing(output);
}
