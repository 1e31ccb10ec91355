import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { grantsFor, ledgerState, migrate as migrateLedger } from '../warehouse/migrate.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabaseAt } from './database.js';
import { EXIT, type ExitCode } from './exit.js';

interface MigrateOptions extends CommonOptions {
  readonly role?: string;
  readonly applyGrants?: boolean;
  readonly dryRun?: boolean;
}

/** `repave migrate`: makes or upgrades the ledger, and says or applies what a worker's role needs. */
export function registerMigrate(program: Command): void {
  addCommand(program, 'migrate', {
    summary: 'make or upgrade the ledger (schema repave) in the warehouse',
    examples: ['repave migrate', 'repave migrate --role repave_worker --apply-grants'],
    after:
      'The database is REPAVE_MIGRATE_URL, else DATABASE_URL: its role must own the schema repave or be allowed to make it.\n' +
      'Migrations go forward only, one transaction each, under a lock; running it again changes nothing.',
  })
    .option('--role <role>', 'print the grants that a worker which logs in as this role needs')
    .option('--apply-grants', 'with --role: run them too')
    .option('--dry-run', 'say what would be done, change nothing')
    .action(runs(migrate));
}

async function migrate(
  { settings, output }: Context,
  _given: readonly unknown[],
  options: MigrateOptions,
): Promise<ExitCode> {
  if (options.applyGrants && options.role === undefined) {
    throw new Failure('InvalidInput', '--apply-grants needs --role: name the role that workers log in as.');
  }
  return withDatabaseAt(migrateUrl(settings), async (database) => {
    const before = await ledgerState(database);
    if (before === 'newer') {
      throw new Failure(
        'InvalidInput',
        'The ledger was made by a newer Repave than this one. Upgrade this one; migrations go forward only.',
      );
    }
    const applied = options.dryRun ? [] : await migrateLedger(database, (line) => output.say(line));
    const grants = options.role === undefined ? [] : grantsFor(options.role, await pipelinesOf(settings, output.say));
    const granted = options.applyGrants === true && options.dryRun !== true;
    if (granted) await runGrants(database, grants);

    output.document({ ledger: before, applied, grants, granted, dryRun: options.dryRun === true });
    if (options.dryRun) output.result(wouldDo(before));
    else if (applied.length === 0) output.result('The ledger is up to date.');
    for (const name of applied) output.result(`applied ${name}`);
    for (const grant of grants) output.result(granted ? `granted: ${grant}` : `${grant};`);
    return EXIT.done;
  });
}

function wouldDo(state: 'missing' | 'older' | 'current'): string {
  switch (state) {
    case 'missing':
      return 'Would make the ledger: schema repave.';
    case 'older':
      return 'Would upgrade the ledger.';
    case 'current':
      return 'The ledger is up to date.';
  }
}

/** A role of its own may own the ledger; workers then need no more than the grants. */
function migrateUrl(settings: Settings): string {
  return settings.env.REPAVE_MIGRATE_URL || databaseUrl(settings);
}

async function pipelinesOf(settings: Settings, say: (text: string) => void): Promise<Pipeline[]> {
  const { pipelines, broken } = await loadPipelines(pipelinesFolder(settings));
  for (const [name, failure] of broken) say(`No grants for ${name}: ${failure.message}`);
  return [...pipelines.values()].filter((pipeline) => pipeline.database === 'DATABASE_URL');
}

async function runGrants(database: Database, grants: readonly string[]): Promise<void> {
  for (const grant of grants) await database.query(grant);
}
