import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { grantsFor, ledgerState, migrate as migrateLedger, pendingMigrations } from '../warehouse/migrate.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { databaseName, pipelinesFolder, withDatabaseAt } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import type { Output } from './output.js';

interface MigrateOptions extends CommonOptions {
  readonly database: string;
  readonly role?: string;
  readonly applyGrants?: boolean;
  readonly dryRun?: boolean;
}

/** `repave migrate`: makes or upgrades the ledger, and says or applies what a worker's role needs. */
export function registerMigrate(program: Command): void {
  addCommand(program, 'migrate', {
    summary: 'make or upgrade the ledger (schema repave)',
    examples: ['repave migrate', 'repave migrate --role repave_worker --apply-grants'],
    after:
      'The database is REPAVE_MIGRATE_URL, else DATABASE_URL: its role must own the schema repave or be allowed to make it.\n' +
      'Migrations go forward only, in one transaction, under a lock; running it again changes nothing.',
  })
    .option(
      '--database <variable>',
      'the variable that pipelines name by `database:`, where it is another',
      'DATABASE_URL',
    )
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
  const { role } = options;
  if (options.applyGrants && role === undefined) {
    throw new Failure('InvalidInput', '--apply-grants needs --role: name the role that workers log in as.');
  }
  return withDatabaseAt(migrateUrl(settings, options.database), async (database) => {
    const before = await ledgerState(database);
    const pending = await pendingMigrations(database);
    // A newer ledger is refused here, dry or not.
    const applied = options.dryRun && before !== 'newer' ? [] : await migrateLedger(database);
    const name = await databaseName(database);
    const grants =
      role === undefined ? [] : grantsFor(role, name, await pipelinesOf(settings, options.database, output));
    const refused = options.applyGrants && !options.dryRun ? await runGrants(database, grants) : [];
    const granted = options.applyGrants === true && options.dryRun !== true;

    output.document({
      database: name,
      ledger: before,
      pending: pending.map(({ name }) => name),
      applied,
      grants,
      granted,
      refused,
    });
    if (pending.length === 0) output.result('The ledger is up to date.');
    for (const { name, sql } of pending)
      output.result(options.dryRun ? `-- ${name}, would be applied\n${sql}` : `applied ${name}`);
    for (const grant of grants) output.result(grant);
    if (granted) output.say(`${grants.length - refused.length} of ${grants.length} grants given to ${role}`);
    for (const { grant, message } of refused) output.say(output.errorColors.red(`✗ ${grant} ${message}`));
    return refused.length > 0 ? EXIT.notWhole : EXIT.done;
  });
}

/** The ledger's owner may be a role of its own; workers then need no more than the grants. */
function migrateUrl(settings: Settings, variable: string): string {
  const owner = variable === 'DATABASE_URL' ? settings.env.REPAVE_MIGRATE_URL : undefined;
  return owner || databaseUrl(settings, variable);
}

async function pipelinesOf(settings: Settings, variable: string, output: Output): Promise<Pipeline[]> {
  const { pipelines, broken } = await loadPipelines(pipelinesFolder(settings));
  for (const [name, failure] of broken) output.say(`No grants for ${name}: ${failure.message}`);
  return [...pipelines.values()].filter((pipeline) => pipeline.database === variable);
}

interface RefusedGrant {
  readonly grant: string;
  readonly message: string;
}

/** Each on its own: a target that is not there yet keeps no other from being granted. */
async function runGrants(database: Database, grants: readonly string[]): Promise<RefusedGrant[]> {
  const refused: RefusedGrant[] = [];
  for (const grant of grants) {
    try {
      await database.query(grant);
    } catch (error) {
      if (!(error instanceof Failure) || error.type === 'DatabaseUnavailable') throw error;
      refused.push({ grant, message: error.message });
    }
  }
  return refused;
}
