import type { Command } from 'commander';
import type { RepaveClient } from '../client.js';
import { MAX_LISTED_FAILURES } from '../contract.js';
import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';
import { type BackfillRow, readBackfills } from '../warehouse/backfills.js';
import type { Database } from '../warehouse/database.js';
import { registeredPipelines } from '../warehouse/ledger.js';
import { type BackfillView, viewBackfills } from './backfill-state.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { EXIT, type ExitCode, tell } from './exit.js';
import { askLedgers, newestFirst } from './ledgers.js';
import type { Output } from './output.js';
import { type FailedPartition, failedPartitions, type PipelineView, viewPipeline } from './pipeline-view.js';
import { backfillLines, backfillTable, failureLines, pipelineTable } from './status-text.js';
import { noWorker, withClient } from './temporal-client.js';

/** Backfills listed, the newest first. */
const LISTED = 10;

/** `repave status`: what is filled, failed and outdated, and which backfills run. */
export function registerStatus(program: Command): void {
  const command = addCommand(program, 'status [pipeline-or-backfill]', {
    summary: 'say how pipelines and backfills stand',
    examples: [
      'repave status',
      'repave status sales_summary',
      'repave status backfill/sales_summary/1997-01-01..1997-01-31',
    ],
    after: 'The ledger is asked, so this answers while no worker runs. Temporal only says whether open backfills live.',
  });
  withTemporal(command).action(runs(status));
}

interface Looked {
  readonly pipelines: readonly PipelineView[];
  readonly failed: readonly FailedPartition[];
  readonly backfills: readonly BackfillRow[];
}

async function status(
  { settings, output }: Context,
  [what]: readonly [string | undefined],
  _options: CommonOptions,
): Promise<ExitCode> {
  const looked = await askLedgers(settings, (database) => look(database, what));
  const pipelines = looked.flatMap((one) => one.pipelines);
  const failed = looked.flatMap((one) => one.failed);
  const rows = newestFirst(looked.flatMap((one) => one.backfills)).slice(0, LISTED);
  if (what !== undefined && pipelines.length === 0 && rows.length === 0) {
    throw new Failure(
      'InvalidInput',
      `The ledger knows no pipeline and no backfill ${JSON.stringify(what)}. Workers register pipelines when they start; \`repave status\` lists all.`,
    );
  }
  const backfills = await backfillsWithState(settings, output, rows);

  const failedInAll = what === undefined ? undefined : pipelines.reduce((sum, view) => sum + view.failed, 0);
  output.document({ pipelines, failed, failedInAll, backfills });
  const single = pipelines.length === 0 && what !== undefined;
  const parts = [
    pipelines.length > 0 ? pipelineTable(output, pipelines) : '',
    failed.length > 0 ? failureLines(output, failed, failedInAll) : '',
    backfills.length > 0 ? (single ? backfillLines : backfillTable)(output, backfills) : '',
  ];
  output.result(parts.filter((part) => part !== '').join('\n\n') || 'Nothing yet.');
  if (pipelines.length === 0 && !single) output.say('Workers register pipelines when they start: `repave worker`.');
  return EXIT.done;
}

async function look(database: Database, what: string | undefined): Promise<Looked> {
  const registered = (await registeredPipelines(database)).filter(({ name }) => what === undefined || name === what);
  const pipelines: PipelineView[] = [];
  for (const pipeline of registered) pipelines.push(await viewPipeline(database, pipeline));
  const one = what === undefined ? undefined : registered[0];
  const failed = one ? await failedPartitions(database, one.name, MAX_LISTED_FAILURES) : [];
  const which = one ? { pipeline: one.name } : { id: what };
  return { pipelines, failed, backfills: await readBackfills(database, { ...which, limit: LISTED }) };
}

/** Asks Temporal of the open ones. Where it cannot be reached that is said, and the ledger's word stands. */
async function backfillsWithState(
  settings: Settings,
  output: Output,
  rows: readonly BackfillRow[],
): Promise<BackfillView[]> {
  if (rows.every(({ outcome }) => outcome !== null)) return viewBackfills(rows, undefined);
  try {
    return await withClient(settings, async (repave: RepaveClient) => {
      const said = await noWorker(repave);
      if (said !== undefined) output.say(said);
      return viewBackfills(rows, repave);
    });
  } catch (error) {
    const { exitCode, message } = tell(error);
    if (exitCode !== EXIT.unreachable) throw error;
    output.say(`${message} Whether open backfills still run is not known.`);
    return viewBackfills(rows, undefined);
  }
}
