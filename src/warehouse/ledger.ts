import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { toFailure } from './errors.js';
import { takeGrid } from './lock.js';
import { ledgerState, REGISTRY_LOCK } from './migrate.js';
import { readTarget } from './target.js';
import { begin, commit } from './transaction.js';
import { withSession } from './with-session.js';

/** A pipeline as the last worker that serves it has registered it. */
export interface RegisteredPipeline {
  readonly name: string;
  readonly target: string;
  readonly column: string;
  readonly by: string;
  readonly zone: string;
  readonly fingerprint: string;
  readonly start: string | null;
  readonly registeredAt: Date;
  /** When this fingerprint was first registered. */
  readonly since: Date;
}

/** The ledger's id. Throws `InvalidInput` with the command to run where the ledger is missing, older or newer. */
export async function ledgerId(database: Database): Promise<string> {
  const state = await ledgerState(database);
  if (state === 'missing')
    throw new Failure('InvalidInput', 'The database has no ledger (schema repave). Run `repave migrate`.');
  if (state === 'older')
    throw new Failure('InvalidInput', 'The ledger is older than this version of Repave. Run `repave migrate`.');
  if (state === 'newer')
    throw new Failure('InvalidInput', 'The ledger is newer than this version of Repave. Upgrade Repave here.');
  const [row] = await database.query<{ id: string }>('SELECT id::pg_catalog.text AS id FROM repave.ledger');
  if (!row) throw new Failure('Unexpected', 'repave.ledger has no row.');
  return row.id;
}

/** Milliseconds a changed grid waits for the fills of its target to end. */
const GRID_WAIT_MS = 60_000;

/**
 * Registers a pipeline as this worker serves it. A changed grid waits until no fill of the target runs.
 * Throws `InvalidPipeline` where another pipeline fills the same target, and what `readTarget` throws.
 */
export async function registerPipeline(database: Database, pipeline: Pipeline): Promise<void> {
  const { column, by, zone } = pipeline.partition;
  try {
    await withSession(database, new AbortController().signal, async (session) => {
      await begin(session, database, {
        applicationName: 'repave register',
        zone,
        lockTimeoutMs: GRID_WAIT_MS,
        statementTimeoutMs: 2 * GRID_WAIT_MS,
      });
      const target = await readTarget(session, pipeline);
      await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::pg_catalog.int8)', [REGISTRY_LOCK]);
      const same = await session.rows<{ name: string; by: string; zone: string; partition_column: string }>(
        'SELECT name, by, zone, partition_column FROM repave.pipeline WHERE target = $1',
        [target.name],
      );
      const other = same.find(({ name }) => name !== pipeline.name);
      if (other) {
        throw new Failure(
          'InvalidPipeline',
          `${target.name} is already the target of ${other.name}: two pipelines would overwrite each other. If ${other.name} is gone: DELETE FROM repave.pipeline WHERE name = '${other.name}'.`,
        );
      }
      const own = same[0];
      if (own && (own.by !== by || own.zone !== zone || own.partition_column !== column))
        await takeGrid(session, target);
      await session.query(
        `INSERT INTO repave.pipeline AS p (name, target, partition_column, by, zone, fingerprint, start)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (name) DO UPDATE
            SET target = excluded.target, partition_column = excluded.partition_column, by = excluded.by, zone = excluded.zone,
                fingerprint = excluded.fingerprint, start = excluded.start, registered_at = excluded.registered_at,
                since = CASE WHEN p.fingerprint = excluded.fingerprint THEN p.since ELSE excluded.since END`,
        [pipeline.name, target.name, column, by, zone, pipeline.fingerprint, pipeline.start ?? null],
      );
      await commit(session);
    });
  } catch (error) {
    throw toFailure(error);
  }
}

/** Every registered pipeline, by name. */
export async function registeredPipelines(database: Database): Promise<RegisteredPipeline[]> {
  return database.query<RegisteredPipeline>(
    `SELECT name, target, partition_column AS "column", by, zone, fingerprint, start, registered_at AS "registeredAt", since
       FROM repave.pipeline ORDER BY name`,
  );
}
