import { Failure } from '../failure.js';
import type { Log } from '../telemetry/log.js';
import type { Database } from '../warehouse/database.js';
import { ledgerState, mayMigrate, migrate } from '../warehouse/migrate.js';

/**
 * Makes sure that a database has the ledger this version needs. A missing or older one is made by the worker itself only where
 * its role owns it or may create it. Throws `InvalidInput` with the command to run.
 */
export async function checkLedger(database: Database, log: Log): Promise<void> {
  const state = await ledgerState(database);
  switch (state) {
    case 'current':
      return;
    case 'newer':
      throw new Failure(
        'InvalidInput',
        'The ledger (schema repave) in the database was made by a newer version of Repave. Start a worker of that version.',
      );
    case 'missing':
    case 'older':
      break;
    default:
      state satisfies never;
  }
  if (!(await mayMigrate(database))) {
    throw new Failure(
      'InvalidInput',
      `The ledger (schema repave) in the database is ${state}, and the worker's role may not make it. ` +
        'Run `repave migrate` with REPAVE_MIGRATE_URL set to the database as a role that may, then start the worker again.',
    );
  }
  const applied = await migrate(database);
  log.info({ migrations: applied }, 'The ledger was made ready');
}
