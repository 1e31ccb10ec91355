import type { Command } from 'commander';
import { loadPipeline, loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { cutToLimits, disjointSpans } from '../plan/left-out.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { askedSpans, limitsOf } from '../plan/selection.js';
import type { Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { passedOver } from '../warehouse/findings.js';
import { ledgerId, registeredPipelines } from '../warehouse/ledger.js';
import type { KeySpan } from '../warehouse/partition-states.js';
import { ALL_KEYS, verifyPipeline } from '../warehouse/verify-pipeline.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabase } from './database.js';
import { EXIT, type ExitCode, type Told, tell } from './exit.js';
import { counted } from './format.js';
import { Interrupted, interruptible } from './interrupt.js';
import { wholeNumber } from './keys.js';
import { selection, type SelectionOptions, selectionWording } from './selection.js';
import { asTyped } from './typed.js';
import { VerifyReport } from './verify-report.js';

interface VerifyOptions extends CommonOptions, Pick<SelectionOptions, 'from' | 'to' | 'last'> {
  readonly dryRun?: boolean;
}

/** Milliseconds between two lines of progress. */
const SAY_EVERY_MS = 2_000;

/** `repave verify`: holds the ledger against the tables. Touches no row of them. Needs no Temporal and no worker. */
export function registerVerify(program: Command): void {
  addCommand(program, 'verify [pipeline] [keys...]', {
    summary: 'find rows that were deleted or changed behind Repave’s back',
    examples: [
      'repave verify',
      'repave verify sales_summary',
      'repave verify sales_summary 1997-01-01..1997-01-31 --dry-run',
    ],
    after:
      'Counts the rows of each partition that the ledger has as filled; where the pipeline says `checksum: true`, their values\n' +
      'are compared too. One whose rows are gone counts as missing from then on, one that has others as outdated: so `plan`,\n' +
      '`status` and a heal see them, and a fill sets them right. No row of a table is touched, and fills may run meanwhile.\n' +
      'Without a pipeline: all of the project; without keys: from its `start` on. It exits with 1 where it found something, and\n' +
      'until that is filled again; where a pipeline could not be compared, with the code of that, findings or not.',
  })
    .option('--from <key>', 'first partition, included')
    .option('--to <key>', 'last partition, included')
    .option('--last <n>', 'the n newest finished partitions', wholeNumber)
    .option('--dry-run', 'compare and say what differs; record nothing')
    .action(runs(verify));
}

async function verify(
  { settings, output }: Context,
  [name, plain]: readonly [string | undefined, readonly string[]],
  { from, to, last, dryRun = false }: VerifyOptions,
): Promise<ExitCode> {
  const asked = selection(plain, { from, to, last });
  const typed = selectionWording(plain, { from, to, last });
  const report = new VerifyReport(dryRun);
  let failed: Told | undefined;
  const pipelines = name === undefined ? await allPipelines(settings, report) : [await named(settings, name)];
  try {
    await interruptible(async (signal) => {
      let saidAt = performance.now();
      for (const pipeline of pipelines) {
        const say = (line: string): void => {
          if (performance.now() - saidAt < SAY_EVERY_MS) return;
          saidAt = performance.now();
          output.say(line);
        };
        try {
          const { spans, notes } = await asTyped(typed, async () => spansOf(pipeline, asked));
          for (const note of notes) report.note(note);
          await withDatabase(settings, pipeline.database, (database) =>
            compareAll(database, pipeline, spans, report, signal, say),
          );
        } catch (error) {
          // What is wrong with one says nothing of the others, nor of what it was found to hold by then, which is recorded.
          if (error instanceof Interrupted) throw error;
          failed = tell(error);
          report.fail(pipeline.name, failed);
        }
      }
    });
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    const recorded = dryRun ? '' : ' What it had found by then is recorded.';
    const message = `It was interrupted.${recorded} Run it again for the rest.`;
    report.tell(output, { type: 'Interrupted', message });
    output.say(message);
    return EXIT.interrupted;
  }
  return report.tell(output, name === undefined ? undefined : failed);
}

async function compareAll(
  database: Database,
  pipeline: Pipeline,
  spans: readonly KeySpan[],
  report: VerifyReport,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  await ledgerId(database);
  if (!(await registeredPipelines(database)).some((registered) => registered.name === pipeline.name)) {
    return report.note(`No worker has registered ${pipeline.name} yet: the ledger has nothing of it.`);
  }
  const entry = report.begin(pipeline.name, await passedOver(database, pipeline, spans));
  for await (const stretch of verifyPipeline(database, { pipeline, spans, dryRun: report.dryRun, signal })) {
    report.add(entry, stretch);
    say(`… ${pipeline.name} ${stretch.last}: ${counted(entry.compared, 'partition')} compared`);
  }
}

/** Never from before the pipeline's start: what is found must be one that can be filled again. */
function spansOf(
  pipeline: Pipeline,
  asked: Readonly<Record<string, unknown>>,
): { readonly spans: readonly KeySpan[]; readonly notes: readonly string[] } {
  if (Object.keys(asked).length === 0) return { spans: [{ ...ALL_KEYS, from: pipeline.start ?? '' }], notes: [] };
  const input = parseBackfillInput({ pipeline: pipeline.name, ...asked }, []);
  const limits = limitsOf({}, pipeline, new Date());
  return cutToLimits(disjointSpans(askedSpans({ ...input, lookback: 0 }, pipeline, limits)), pipeline, limits);
}

async function named(settings: Settings, name: string): Promise<Pipeline> {
  return loadPipeline(pipelinesFolder(settings), name);
}

async function allPipelines(settings: Settings, report: VerifyReport): Promise<Pipeline[]> {
  const { pipelines, broken } = await loadPipelines(pipelinesFolder(settings));
  for (const [name, failure] of broken) report.fail(name, tell(failure));
  return [...pipelines.values()];
}
