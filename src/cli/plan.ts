import type { Command } from 'commander';
import type { BackfillInput } from '../contract.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, instant, number, span } from './format.js';
import { planRequest } from './plan-request.js';
import { selection, type SelectionOptions, withSelection } from './selection.js';
import { table } from './table.js';

/** `repave plan`: exactly which partitions a backfill would fill, and why. Writes nothing and needs no Temporal. */
export function registerPlan(program: Command): void {
  const command = addCommand(program, 'plan <pipeline> [keys...]', {
    summary: 'say what a backfill would fill and why; write nothing',
    examples: [
      'repave plan sales_summary --from 1997-01-01 --to 1997-01-31',
      'repave plan sales_summary 1997-01-15.. --only missing,failed',
    ],
    after: 'Keys stand as plain arguments too: 2024-02-29 2024-03-01..2024-03-31. Both ends of a range are included.',
  });
  withSelection(command).action(
    runs<readonly [string, readonly string[]], CommonOptions & SelectionOptions>(
      async (context, [pipeline, keys], options) =>
        showPlan(context, parseBackfillInput({ pipeline, ...selection(keys, options) }, [])),
    ),
  );
}

/** Plans a request against the ledger and writes the plan out. */
export async function showPlan({ settings, output }: Context, input: BackfillInput): Promise<ExitCode> {
  const { plan, rows } = await planRequest(settings, input);
  const held = (key: string): number | undefined => rows.get(key)?.rows ?? undefined;

  output.document({
    pipeline: plan.pipeline,
    first: plan.first,
    last: plan.last,
    total: plan.entries.length,
    counts: plan.counts,
    notes: plan.notes,
    partitions: plan.entries.map(({ key, reason }) => ({ key, reason, rows: held(key) })),
  });
  if (plan.entries.length > 0) {
    const columns = [
      { heading: 'partition' },
      { heading: 'reason' },
      { heading: 'rows now', align: 'right' },
      { heading: 'filled' },
    ] as const;
    const lines = plan.entries.map(({ key, reason }) => {
      const now = held(key);
      const filledAt = rows.get(key)?.filledAt;
      return [key, reason, now === undefined ? '' : number(now), filledAt ? instant(filledAt) : ''];
    });
    output.result(table(output, columns, lines));
  }
  const reasons = Object.entries(plan.counts).filter(([, count]) => count > 0);
  output.say(
    `${`${plan.pipeline} ${span(plan.first, plan.last)}`.trimEnd()}: ${counted(plan.entries.length, 'partition')} to fill` +
      (reasons.length > 0 ? ` (${reasons.map(([reason, count]) => `${number(count)} ${reason}`).join(', ')})` : ''),
  );
  for (const note of plan.notes) output.say(note);
  return EXIT.done;
}
