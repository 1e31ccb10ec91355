import type { Command } from 'commander';
import type { RepaveClient } from '../client.js';
import { DEFAULTS, MAX_LISTED_FAILURES } from '../contract.js';
import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';
import { type BackfillRow, readBackfills } from '../warehouse/backfills.js';
import type { Database } from '../warehouse/database.js';
import { failedPartitions } from '../warehouse/failed-partitions.js';
import { registeredPipelines } from '../warehouse/ledger.js';
import { restingPartitions } from '../warehouse/resting.js';
import { type BackfillView, type RecordedBackfill, recordedBackfills, viewBackfills } from './backfill-state.js';
import { backfillText } from './backfill-text.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { EXIT, type ExitCode, tell } from './exit.js';
import { askLedgers, newestFirst } from './ledgers.js';
import type { Output } from './output.js';
import { type PipelineView, viewPipeline } from './pipeline-view.js';
import { seenByWorker } from './seen-by-worker.js';
import { tellStale } from './stale.js';
import { backfillTable, failureLines, type ListedFailure, pipelineTable } from './status-text.js';
import { isTemporalNamed, noWorker, soon, withClientSoon } from './temporal-client.js';
import { allUnbegun, type Unbegun, unbegun, unbegunText } from './unbegun.js';
import { unregisteredPipelines, unregisteredText } from './unregistered.js';

/** Backfills listed that have ended, the newest first. */
const LISTED = 10;
/** Open ones listed, the newest first. */
const LISTED_OPEN = 100;

/** `repave status`: what is filled, missing, failed and outdated, and which backfills run, and how far they are. */
export function registerStatus(program: Command): void {
  const command = addCommand(program, 'status [pipeline-or-backfill]', {
    summary: 'say how pipelines and backfills stand',
    examples: [
      'repave status',
      'repave status sales_summary',
      'repave status backfill/sales_summary/1997-01-01..1997-01-31',
      'repave status --stale 6h',
    ],
    after:
      'The ledger is asked, so this answers while no worker runs. Temporal only says whether open backfills live, and of one\n' +
      'that is named what it is at. With --stale it does not ask Temporal, and exits with 1 where a pipeline is behind: the\n' +
      'partition behind its newest one that is filled or outdated, or with none its first one, ended longer ago than that.',
  });
  withTemporal(command)
    .option('--stale <duration>', 'say only which pipelines are behind by more than this: 6h, 45m, 3d')
    .action(runs(status));
}

interface StatusOptions extends CommonOptions {
  readonly stale?: string;
}

interface Looked {
  readonly pipelines: readonly PipelineView[];
  readonly failed: readonly ListedFailure[];
  readonly backfills: readonly RecordedBackfill[];
}

async function status(
  { settings, output }: Context,
  [what]: readonly [string | undefined],
  { stale }: StatusOptions,
): Promise<ExitCode> {
  if (stale !== undefined) return tellStale(settings, output, what, stale);
  const looked = await askLedgers(settings, (database) => look(database, what));
  const pipelines = looked.flatMap((one) => one.pipelines);
  const failed = looked.flatMap((one) => one.failed);
  const recorded = listed(looked.flatMap((one) => one.backfills));
  const single = pipelines.length === 0 ? what : undefined;
  if (single !== undefined && recorded.length === 0) return tellUnbegun(settings, output, single);
  const { backfills, waiting } = await withTemporalsWord(settings, output, recorded, { what, single });

  const failedInAll = what === undefined ? undefined : pipelines.reduce((sum, view) => sum + view.failed, 0);
  const unregistered = what === undefined ? await unregisteredPipelines(settings, pipelines) : [];
  output.document({ pipelines, failed, failedInAll, backfills: [...waiting, ...backfills], unregistered });
  const parts = [
    pipelines.length > 0 ? pipelineTable(output, pipelines) : '',
    failed.length > 0 ? failureLines(output, failed, failedInAll) : '',
    single !== undefined ? backfills.map((view) => backfillText(output, view, settings)).join('\n\n') : '',
    single === undefined && backfills.length > 0 ? backfillTable(output, backfills) : '',
    waiting.map(unbegunText).join('\n\n'),
  ];
  output.result(parts.filter((part) => part !== '').join('\n\n') || 'Nothing yet.');
  if (unregistered.length > 0) output.say(unregisteredText(unregistered));
  else if (pipelines.length === 0 && single === undefined) {
    output.say('Workers register pipelines when they start: `repave worker`.');
  }
  return EXIT.done;
}

async function look(database: Database, what: string | undefined): Promise<Looked> {
  const registered = (await registeredPipelines(database)).filter(({ name }) => what === undefined || name === what);
  const pipelines: PipelineView[] = [];
  for (const pipeline of registered) pipelines.push(await viewPipeline(database, pipeline));
  const one = what === undefined ? undefined : registered[0];
  const failed = one ? await failedWithRest(database, one.name) : [];
  const which = one ? { pipeline: one.name } : { id: what };
  const rows = [
    ...(await readBackfills(database, { ...which, open: true, limit: LISTED_OPEN })),
    ...(await readBackfills(database, { ...which, limit: LISTED })),
  ];
  const each = new Map(rows.map((row) => [row.run, row]));
  return {
    pipelines,
    failed,
    backfills: await recordedBackfills(database, [...each.values()], what !== undefined && !one),
  };
}

/** The first failed partitions of a pipeline, and which of these healing tries no more. */
async function failedWithRest(database: Database, pipeline: string): Promise<ListedFailure[]> {
  const failed = await failedPartitions(database, pipeline, MAX_LISTED_FAILURES);
  const keys = failed.map(({ key }) => key);
  const resting = await restingPartitions(database, pipeline, keys, DEFAULTS.healTries);
  return failed.map((one) => (resting.some(({ key }) => key === one.key) ? { ...one, rests: true } : one));
}

/** Open ones first, then those that have ended, each the newest first. */
function listed(backfills: readonly RecordedBackfill[]): RecordedBackfill[] {
  const isOpen = ({ outcome }: BackfillRow): boolean => outcome === null;
  const all = newestFirst(backfills);
  return [...all.filter(isOpen), ...all.filter((row) => !isOpen(row)).slice(0, LISTED)];
}

interface TemporalsWord {
  readonly backfills: readonly BackfillView[];
  /** Those that no worker has begun yet. */
  readonly waiting: readonly Unbegun[];
}

/**
 * Asks Temporal whether the open ones live, and, unless one was named, which no worker has begun. Where it cannot be reached
 * soon, that is said if it matters, and the ledger's word stands.
 */
async function withTemporalsWord(
  settings: Settings,
  output: Output,
  recorded: readonly RecordedBackfill[],
  { what, single }: { readonly what: string | undefined; readonly single: string | undefined },
): Promise<TemporalsWord> {
  const open = recorded.filter(({ outcome }) => outcome === null);
  if (single !== undefined && open.length === 0) {
    return { backfills: await viewBackfills(recorded, undefined), waiting: [] };
  }
  try {
    return await withClientSoon(settings, async (repave: RepaveClient) => {
      const begun = new Set(open.map(({ id }) => id));
      const [said, backfills, waiting] = await soon(repave, () =>
        Promise.all([
          noWorker(repave),
          viewBackfills(recorded, repave),
          single === undefined ? allUnbegun(repave, what, begun) : [],
        ]),
      );
      if (said !== undefined && open.length + waiting.length > 0) output.say(said);
      if (single === undefined) return { backfills, waiting };
      const inDetail = backfills.map(async (view) => (view.state === 'running' ? seenByWorker(repave, view) : view));
      return { backfills: await Promise.all(inDetail), waiting };
    });
  } catch (error) {
    const { exitCode, message } = tell(error);
    if (exitCode !== EXIT.unreachable && open.length > 0) throw error;
    if (open.length > 0) output.say(`${message} Whether open backfills still run is not known.`);
    else if (exitCode === EXIT.unreachable && (await isTemporalNamed(settings))) {
      output.say(`${message} Backfills that no worker has begun are not shown.`);
    }
    return { backfills: await viewBackfills(recorded, undefined), waiting: [] };
  }
}

/** A backfill that no ledger has: Temporal may have it, until a worker begins it. */
async function tellUnbegun(settings: Settings, output: Output, id: string): Promise<ExitCode> {
  const look = async (repave: RepaveClient): Promise<Unbegun | undefined> => {
    const found = await soon(repave, () => unbegun(repave, id));
    const said = found && (await soon(repave, () => noWorker(repave)));
    if (said !== undefined) output.say(said);
    return found;
  };
  let unasked = '';
  const found = await withClientSoon(settings, look).catch((error: unknown) => {
    const { exitCode, message } = tell(error);
    if (exitCode !== EXIT.unreachable) throw error;
    unasked = ` ${message} It may know one that no worker has begun.`;
    return undefined;
  });
  if (!found) {
    throw new Failure(
      'InvalidInput',
      `The ledger knows no pipeline and no backfill ${JSON.stringify(id)}. Workers register pipelines when they start; \`repave status\` lists all.${unasked}`,
    );
  }
  output.document({ pipelines: [], failed: [], backfills: [found] });
  output.result(unbegunText(found));
  return EXIT.done;
}
