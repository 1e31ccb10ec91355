import type { Command } from 'commander';
import type { BackfillInput } from '../contract.js';
import { loadPipeline } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { type Plan, resolvePlan } from '../plan/resolve-plan.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId, registeredPipelines } from '../warehouse/ledger.js';
import { ledgerState } from '../warehouse/migrate.js';
import { type PartitionRow, partitionRows } from '../warehouse/partitions.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabase } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, instant, number, span } from './format.js';
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
  const pipeline = await loadPipeline(pipelinesFolder(settings), input.pipeline);
  // A wrong key is wrong whether or not a database answers.
  await resolvePlan(input, pipeline, { now: new Date(), rows: () => Promise.resolve(new Map()) });
  const { plan, rows } = await withDatabase(settings, pipeline.database, (database) =>
    planIn(database, pipeline, input),
  );
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
    `${plan.pipeline} ${span(plan.first, plan.last)}: ${counted(plan.entries.length, 'partition')} to fill` +
      (reasons.length > 0 ? ` (${reasons.map(([reason, count]) => `${number(count)} ${reason}`).join(', ')})` : ''),
  );
  for (const note of plan.notes) output.say(note);
  return EXIT.done;
}

interface PlannedIn {
  readonly plan: Plan;
  readonly rows: ReadonlyMap<string, PartitionRow>;
}

/** Without a ledger every partition is missing. With one, the pipeline is judged as workers have registered it. */
async function planIn(database: Database, pipeline: Pipeline, input: BackfillInput): Promise<PlannedIn> {
  const rows = new Map<string, PartitionRow>();
  if ((await ledgerState(database)) === 'missing') {
    const plan = await resolvePlan(input, pipeline, { now: new Date(), rows: () => Promise.resolve(new Map()) });
    return {
      plan: { ...plan, notes: [...plan.notes, 'This database has no ledger yet: `repave migrate` makes it.'] },
      rows,
    };
  }
  await ledgerId(database);
  const registered = (await registeredPipelines(database)).find(({ name }) => name === pipeline.name);
  const notes: string[] = [];
  if (registered && registered.fingerprint !== pipeline.fingerprint) {
    notes.push('Workers have another version of this pipeline than the file here: the plan goes by theirs.');
  }
  const judged = registered ? { ...pipeline, fingerprint: registered.fingerprint } : pipeline;
  const plan = await resolvePlan(input, judged, {
    now: new Date(),
    rows: async (from, to) => {
      const found = await partitionRows(database, judged.name, from, to);
      for (const [key, row] of found) rows.set(key, row);
      return found;
    },
  });
  return { plan: { ...plan, notes: [...plan.notes, ...notes] }, rows };
}
