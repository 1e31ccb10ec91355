import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { DURATION_FORM, durationMs } from '../pipeline/duration.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId, registeredPipelines } from '../warehouse/ledger.js';
import { PRUNABLE } from '../warehouse/prunable.js';
import { prune as pruneLedger } from '../warehouse/prune.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { databaseName, pipelinesFolder, withDatabaseAt } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { bytes, counted, duration, number } from './format.js';
import { Interrupted, interruptible } from './interrupt.js';
import { migrateUrl } from './migrate.js';
import type { Output } from './output.js';
import { table } from './table.js';

interface PruneOptions extends CommonOptions {
  readonly keep: string;
  readonly database: string;
  readonly dryRun?: boolean;
}

/** What is kept where `--keep` does not say. */
export const DEFAULT_KEEP = '90d';
const LEAST_KEEP_MS = 86_400_000;
/** Rows looked at between two lines of progress. */
const SAY_EVERY = 200_000;

/** `repave prune`: keeps the ledger from growing for ever. Needs no Temporal and no worker; fills may go on meanwhile. */
export function registerPrune(program: Command): void {
  addCommand(program, 'prune', {
    summary: 'remove what is old and over from the ledger',
    examples: ['repave prune --dry-run', 'repave prune', 'repave prune --keep 30d'],
    after:
      'Of what is older than --keep, these go: fills that a later one has replaced, failures that a partition has left behind,\n' +
      'claims of runs that are over, and backfills that have ended. The lists of keys of ended backfills go at once.\n' +
      'What partitions hold, the newest fill of each, its failure where it is failed, and all of an open backfill stay.\n' +
      'It works in small transactions, so fills may run meanwhile, and it may be ended and run again at any time. The space is\n' +
      'used again once autovacuum has been there. The database is REPAVE_MIGRATE_URL, else DATABASE_URL: workers may not delete.',
  })
    .option('--keep <duration>', 'how long what is over is kept: days (90d) or hours (48h), at least 1d', DEFAULT_KEEP)
    .option(
      '--database <variable>',
      'the variable that pipelines name by `database:`, where it is another',
      'DATABASE_URL',
    )
    .option('--dry-run', 'count and say what would be removed; change nothing')
    .action(runs(prune));
}

async function prune(
  { settings, output }: Context,
  _given: readonly unknown[],
  { keep, database: variable, dryRun = false }: PruneOptions,
): Promise<ExitCode> {
  const keepMs = keepOf(keep);
  const files = await pipelinesOf(settings, variable);
  refuseShort(keep, keepMs, files);
  return withDatabaseAt(migrateUrl(settings, variable), async (database) => {
    await ledgerId(database);
    const warnings = await unknownLimits(database, keep, files);
    for (const warning of warnings) output.say(warning);
    const totals = new Map(PRUNABLE.map(({ table }) => [table, { seen: 0, rows: 0, bytes: 0 }]));
    const report = { output, database: await databaseName(database), keep, dryRun, warnings, totals };
    try {
      await interruptible(async (signal) => {
        for await (const page of pruneLedger(database, { keepMs, dryRun, signal })) {
          const before = totals.get(page.table) ?? { seen: 0, rows: 0, bytes: 0 };
          const seen = before.seen + page.seen;
          const total = { seen, rows: before.rows + page.rows, bytes: before.bytes + page.bytes };
          totals.set(page.table, total);
          if (Math.floor(seen / SAY_EVERY) > Math.floor(before.seen / SAY_EVERY))
            output.say(
              `… repave.${page.table}: ${counted(seen, 'row')} looked at, ${number(total.rows)} ${verb(dryRun)}`,
            );
        }
      });
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
      return tell(report, 'It was interrupted. Run it again to go on: what is removed is removed.');
    }
    return tell(report);
  });
}

interface Report {
  readonly output: Output;
  readonly database: string;
  readonly keep: string;
  readonly dryRun: boolean;
  readonly warnings: readonly string[];
  readonly totals: ReadonlyMap<string, { readonly rows: number; readonly bytes: number }>;
}

function tell({ output, database, keep, dryRun, warnings, totals }: Report, interrupted?: string): ExitCode {
  const tables = [...totals].map(([table, { rows, bytes }]) => ({ table: `repave.${table}`, rows, bytes }));
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const error = interrupted === undefined ? undefined : { type: 'Interrupted', message: interrupted };
  output.document({ database, keep, dryRun, rows, tables, warnings, error });
  output.result(
    table(
      output,
      [{ heading: 'table' }, { heading: verb(dryRun), align: 'right' }, { heading: 'size', align: 'right' }],
      tables.map((table) => [table.table, number(table.rows), bytes(table.bytes)]),
    ),
  );
  output.say(
    `${counted(rows, 'row')} ${verb(dryRun)}: lists of runs that have ended, and what was over for more than ${keep}.${dryRun ? ' Nothing was changed.' : ''}`,
  );
  if (interrupted === undefined) return EXIT.done;
  output.say(interrupted);
  return EXIT.interrupted;
}

function verb(dryRun: boolean): string {
  return dryRun ? 'would be removed' : 'removed';
}

/** Milliseconds of `--keep`. */
function keepOf(keep: string): number {
  const ms = durationMs(keep);
  if (ms !== undefined && ms >= LEAST_KEEP_MS) return ms;
  throw new Failure('InvalidInput', `--keep is ${JSON.stringify(keep)}: it takes ${DURATION_FORM}, and at least 1d.`);
}

/** The pipelines of the files here that fill this database; undefined where there are no files. */
async function pipelinesOf(settings: Settings, variable: string): Promise<readonly Pipeline[] | undefined> {
  try {
    const { pipelines } = await loadPipelines(pipelinesFolder(settings));
    return [...pipelines.values()].filter(({ database }) => database === variable);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/**
 * A run looks for its own fill until it has given up and recorded that, each of which may take `giveUpAfter`: a fill that
 * was pruned before would be recorded as failed.
 */
function refuseShort(keep: string, keepMs: number, files: readonly Pipeline[] = []): void {
  const short = files.find(({ retry }) => 2 * retry.giveUpAfterMs > keepMs);
  if (!short) return;
  const seconds = short.retry.giveUpAfterMs / 1000;
  throw new Failure(
    'InvalidInput',
    `--keep is ${keep}, and the pipeline ${short.name} has giveUpAfter ${duration(seconds)}: a run of it may look for its fill for twice as long. ` +
      `Give at least ${Math.ceil((2 * seconds) / 86_400)}d.`,
  );
}

/** What is to be said of registered pipelines whose time to give up is not known here. */
async function unknownLimits(
  database: Database,
  keep: string,
  files: readonly Pipeline[] | undefined,
): Promise<string[]> {
  const known = new Set(files?.map(({ name }) => name));
  const unknown = (await registeredPipelines(database)).filter(({ name }) => !known.has(name));
  if (unknown.length === 0) return [];
  const names = unknown.map(({ name }) => name);
  const some = names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ');
  return [`The files of ${some} are not here: see that twice their giveUpAfter (24h unless set) is less than ${keep}.`];
}
