import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import {
  grantNotes,
  grantsFor,
  ledgerState,
  migrate as migrateLedger,
  pendingMigrations,
} from '../warehouse/migrate.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporalServer } from './command.js';
import { databaseName, pipelinesFolder, withDatabaseAt } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import type { Output } from './output.js';
import { prepareSearchAttributes } from './search-attributes.js';

interface MigrateOptions extends CommonOptions {
  readonly database: string;
  readonly role?: string;
  readonly applyGrants?: boolean;
  readonly dryRun?: boolean;
  /** False: Temporal is left alone. */
  readonly temporal: boolean;
}

/**
 * `repave migrate`: makes or upgrades the ledger, says or applies what a worker's role needs, and registers the search
 * attributes where there is a Temporal server that lets it.
 */
export function registerMigrate(program: Command): void {
  const command = addCommand(program, 'migrate', {
    summary: 'make or upgrade the ledger (schema repave)',
    examples: ['repave migrate', 'repave migrate --role repave_worker --apply-grants'],
    after:
      'The database is REPAVE_MIGRATE_URL, else DATABASE_URL: its role must own the schema repave or be allowed to make it.\n' +
      'Migrations go forward only, in one transaction, under a lock; running it again changes nothing.\n' +
      'Where a Temporal server is named (TEMPORAL_ADDRESS, a profile, a running `repave dev`), its namespace gets the search\n' +
      'attributes RepavePipeline, RepaveKey and RepaveBackfill. Where it refuses, that is said, and the exit code stays.',
  });
  withTemporalServer(command)
    .option(
      '--database <variable>',
      'the variable that pipelines name by `database:`, where it is another',
      'DATABASE_URL',
    )
    .option('--role <role>', 'print the grants that a worker which logs in as this role needs')
    .option('--apply-grants', 'with --role: run them too')
    .option('--dry-run', 'say what would be done, change nothing')
    .option('--no-temporal', "leave Temporal's search attributes alone")
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
    const pipelines = role === undefined ? [] : await pipelinesOf(settings, options.database, output);
    const grants = role === undefined ? [] : grantsFor(role, name, pipelines);
    const notes = role === undefined ? [] : grantNotes(role, pipelines);
    const refused = options.applyGrants && !options.dryRun ? await runGrants(database, grants) : [];
    const granted = options.applyGrants === true && options.dryRun !== true;

    const searchAttributes = options.temporal
      ? await prepareSearchAttributes(settings, { register: !options.dryRun })
      : undefined;

    output.document({
      database: name,
      ledger: before,
      pending: pending.map(({ name }) => name),
      applied,
      grants,
      notes,
      granted,
      refused,
      searchAttributes: searchAttributes?.outcome,
    });
    if (pending.length === 0) output.result('The ledger is up to date.');
    for (const { name, sql } of pending)
      output.result(options.dryRun ? `-- ${name}, would be applied\n${sql}` : `applied ${name}`);
    for (const line of [...grants, ...notes]) output.result(line);
    if (granted) output.say(`${grants.length - refused.length} of ${grants.length} grants given to ${role}`);
    for (const { grant, message } of refused) output.say(output.errorColors.red(`✗ ${grant} ${message}`));
    for (const line of searchAttributes?.lines ?? []) output.say(line);
    return refused.length > 0 ? EXIT.notWhole : EXIT.done;
  });
}

/** The ledger's owner may be a role of its own; workers then need no more than the grants. */
export function migrateUrl(settings: Settings, variable: string): string {
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
