import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { Window } from '../calendar/calendar.js';
import { keyAt, keysBetween } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import type { BackfillInput } from '../contract.js';
import { loadPipeline } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { fillable } from '../plan/fillable.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { askedSpans, limitsOf, type Span } from '../plan/selection.js';
import { clientIdentity } from '../temporal/client-identity.js';
import { adoptWindows, countOutside, oldestInstant } from '../warehouse/adopt.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId, registeredPipelines, registerPipeline } from '../warehouse/ledger.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabase } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { AdoptionTotal } from './adoption-total.js';
import { counted } from './format.js';
import { Interrupted, interruptible } from './interrupt.js';
import type { Output } from './output.js';
import { otherVersion } from './other-version.js';
import { selection, selectionWording } from './selection.js';
import { asTyped } from './typed.js';

interface AdoptOptions extends CommonOptions {
  readonly from?: string;
  readonly to?: string;
  readonly empty?: boolean;
  readonly dryRun?: boolean;
}

/** Partitions counted in one pass, and recorded in one transaction. */
const CHUNK = 1_000;

/** `repave adopt`: records what a table held before Repave as filled. Touches no row of it. Needs no Temporal and no worker. */
export function registerAdopt(program: Command): void {
  addCommand(program, 'adopt <pipeline> [keys...]', {
    summary: 'record the rows that a table holds already as filled',
    examples: [
      'repave adopt sales_summary --dry-run',
      'repave adopt sales_summary',
      'repave adopt sales_summary 1997-01-01..2023-12-31',
    ],
    after:
      "Without keys: from the pipeline's start, or from the table's oldest row, to the newest finished partition. Each\n" +
      "partition's rows are counted, and the ledger gets an entry marked as adopted, as if today's version of the pipeline\n" +
      'had filled it. No row of the table is touched or looked at more closely: adopt what you trust, and backfill the rest.\n' +
      'Partitions that the ledger knows already, filled or failed, stay as they are; so running it again is safe. One that\n' +
      '`verify` has found without its rows is missing; it is adopted where there are rows again, --empty or not.\n' +
      'A pipeline that no worker has registered yet is registered. Backfills may run meanwhile.',
  })
    .option('--from <key>', 'first partition, included')
    .option('--to <key>', 'last partition, included')
    .option('--empty', 'record partitions without rows too, that were never filled; else they stay missing')
    .option('--dry-run', 'count and say what would be recorded; change nothing')
    .action(
      runs<readonly [string, readonly string[]], AdoptOptions>(async (context, given, options) =>
        asTyped(selectionWording(given[1], options), () => adopt(context, given, options)),
      ),
    );
}

async function adopt(
  { settings, output }: Context,
  [name, plain]: readonly [string, readonly string[]],
  { from, to, empty = false, dryRun = false }: AdoptOptions,
): Promise<ExitCode> {
  const given = plain.length > 0 || from !== undefined || to !== undefined;
  const input = given ? parseBackfillInput({ pipeline: name, ...selection(plain, { from, to }) }, []) : undefined;
  const pipeline = await loadPipeline(pipelinesFolder(settings), name);
  const total = new AdoptionTotal(pipeline.name, dryRun);
  try {
    await interruptible((signal) =>
      withDatabase(settings, pipeline.database, async (database) => {
        const { fingerprint, notes: prepared } = await prepare(database, pipeline, dryRun);
        total.note(...prepared);
        const asked = input ?? (await fromTheFirst(database, pipeline, signal));
        if (asked === undefined) {
          total.addOutside(await countOutside(database, pipeline, undefined, signal));
          return total.note(`${pipeline.target.table} holds no rows with a date: there is nothing to adopt.`);
        }
        const limits = limitsOf({}, pipeline, new Date());
        const { spans, notes } = fillable(askedSpans(asked, pipeline, limits), pipeline, limits);
        total.note(...notes);
        const request = {
          pipeline,
          fingerprint,
          run: `adopt/${randomUUID()}`,
          startedBy: clientIdentity(),
          empty,
          dryRun,
          signal,
        };
        for (const windows of chunks(pipeline, spans)) {
          total.add(await adoptWindows(database, { ...request, windows }));
          if (windows.length === CHUNK) output.say(`… ${windows.at(-1)?.key}: ${total.said()}`);
        }
        // Whoever names keys knows that there is more.
        if (!input) total.addOutside(await countOutside(database, pipeline, ends(pipeline, spans), signal));
      }),
    );
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    return tell(output, total, 'It was interrupted. Run it again to go on: what is recorded stays.');
  }
  return tell(output, total);
}

function tell(output: Output, total: AdoptionTotal, interrupted?: string): ExitCode {
  const error = interrupted === undefined ? undefined : { type: 'Interrupted', message: interrupted };
  output.document({ ...total.document(), error });
  const mark = total.dryRun || interrupted !== undefined ? '' : `${output.colors.green('✓')} `;
  output.result(`${mark}${total.said()}`);
  for (const line of total.leftOut()) output.result(`  ${line}`);
  for (const note of total.notes) output.say(note);
  if (total.dryRun) output.say('Nothing was recorded.');
  if (interrupted === undefined) return EXIT.done;
  output.say(interrupted);
  return EXIT.interrupted;
}

/**
 * Names the pipeline in the ledger where no worker has done so. Returns by which fingerprint its partitions count as filled,
 * and what to say.
 */
async function prepare(
  database: Database,
  pipeline: Pipeline,
  dryRun: boolean,
): Promise<{ readonly fingerprint: string; readonly notes: readonly string[] }> {
  await ledgerId(database);
  const registered = (await registeredPipelines(database)).find(({ name }) => name === pipeline.name);
  if (registered) {
    const other = otherVersion(pipeline, registered);
    const notes = other === undefined ? [] : [`${other} The partitions count as filled by theirs.`];
    return { fingerprint: registered.fingerprint, notes };
  }
  const { fingerprint, formerly } = pipeline;
  if (dryRun) {
    const notes =
      formerly === undefined
        ? []
        : [`What the ledger has of ${formerly} is carried over first, which --dry-run leaves out.`];
    return { fingerprint, notes };
  }
  const carried = await registerPipeline(database, pipeline);
  const notes = carried
    ? [`${counted(carried.partitions, 'partition')} of ${carried.former} are ${pipeline.name}'s now.`]
    : [];
  return { fingerprint, notes };
}

/** The request where no keys are given; undefined where the table holds no rows of the pipeline. */
async function fromTheFirst(
  database: Database,
  pipeline: Pipeline,
  signal: AbortSignal,
): Promise<BackfillInput | undefined> {
  const { name, start, partition } = pipeline;
  if (start !== undefined) return { pipeline: name, from: start };
  const oldest = await oldestInstant(database, pipeline, signal);
  return oldest === undefined ? undefined : { pipeline: name, from: keyAt(partition, oldest) };
}

/** The first and the last window of the spans. */
function ends({ partition }: Pipeline, spans: readonly [Span, ...Span[]]): readonly [Window, Window] {
  const last = spans.at(-1) ?? spans[0];
  return [windowOf(partition, spans[0].from), windowOf(partition, last.to)];
}

/** The windows of the spans, in runs of neighbours. */
function* chunks({ partition }: Pipeline, spans: readonly Span[]): Generator<Window[]> {
  for (const { from, to } of spans) {
    let windows: Window[] = [];
    for (const key of keysBetween(partition, from, to)) {
      windows.push(windowOf(partition, key));
      if (windows.length < CHUNK) continue;
      yield windows;
      windows = [];
    }
    if (windows.length > 0) yield windows;
  }
}
