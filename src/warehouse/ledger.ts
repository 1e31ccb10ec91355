import { Failure } from '../failure.js';
import { circleOf, circleProblem, type Ordered } from '../pipeline/after.js';
import type { Pipeline, Scope } from '../pipeline/pipeline.js';
import { tableText } from '../pipeline/table-name.js';
import { type CarriedOver, carryOver } from './carry-over.js';
import type { Database } from './database.js';
import { sqlstate, toFailure } from './errors.js';
import { takeGrid } from './lock.js';
import { ledgerState, REGISTRY_LOCK } from './migrate.js';
import { canonicalScope, describeScope, disjointScopes } from './scope.js';
import { readTarget, type Target } from './target.js';
import { begin, commit } from './transaction.js';
import { withSession } from './with-session.js';

/** A pipeline as the last worker that serves it has registered it. */
export interface RegisteredPipeline {
  readonly name: string;
  readonly target: string;
  readonly column: string;
  readonly by: string;
  readonly zone: string;
  /** In canonical form; `{}`: all rows. */
  readonly scope: Scope;
  readonly fingerprint: string;
  readonly start: string | null;
  /** Pipelines whose partitions that overlap must be filled first. */
  readonly after: readonly string[];
  readonly registeredAt: Date;
  /** When this fingerprint was first registered. */
  readonly since: Date;
}

/**
 * The ledger's id. Throws `InvalidInput` with the command to run where the ledger is missing, older or newer; with `orNewer` not
 * where it is newer: a worker that runs goes on while an upgrade is under way, since migrations leave it what it needs.
 */
export async function ledgerId(database: Database, { orNewer = false } = {}): Promise<string> {
  const state = await ledgerState(database);
  if (state === 'missing')
    throw new Failure('InvalidInput', 'The database has no ledger (schema repave). Run `repave migrate`.');
  if (state === 'older')
    throw new Failure('InvalidInput', 'The ledger is older than this version of Repave. Run `repave migrate`.');
  if (state === 'newer' && !orNewer)
    throw new Failure('InvalidInput', 'The ledger is newer than this version of Repave. Upgrade Repave here.');
  const [row] = await database.query<{ id: string }>('SELECT id::pg_catalog.text AS id FROM repave.ledger');
  if (!row) throw new Failure('Unexpected', 'repave.ledger has no row.');
  return row.id;
}

/** Milliseconds a changed grid waits for the fills of its target to end. */
const GRID_WAIT_MS = 60_000;

/**
 * Registers a pipeline as this worker serves it. A changed grid or scope waits until no fill of the target runs. Returns what it has
 * carried over from the pipeline's former name.
 *
 * Throws `InvalidPipeline` where another pipeline fills the same target by another grid or without a disjoint scope, or where `after`
 * goes in a circle, `Conflict`
 * where fills of the target still run after a minute, and what `readTarget` and `canonicalScope` throw.
 */
export async function registerPipeline(database: Database, pipeline: Pipeline): Promise<CarriedOver | undefined> {
  const { column, by, zone } = pipeline.partition;
  try {
    return await withSession(database, new AbortController().signal, async (session) => {
      await begin(session, database, {
        applicationName: 'repave register',
        zone,
        lockTimeoutMs: GRID_WAIT_MS,
        statementTimeoutMs: 2 * GRID_WAIT_MS,
      });
      const target = await readTarget(session, pipeline);
      await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::pg_catalog.int8)', [REGISTRY_LOCK]);
      const carried = await carryOver(session, pipeline, target);
      refuseCircle(pipeline, await session.rows<Ordered>('SELECT name, after FROM repave.pipeline'));
      const scope = await canonicalScope(session, pipeline, target);
      const same = await session.rows<Registered>(
        'SELECT name, by, zone, partition_column AS "column", scope FROM repave.pipeline WHERE target = $1 ORDER BY name',
        [target.name],
      );
      for (const other of same) if (other.name !== pipeline.name) refuseRival(pipeline, target, scope, other);
      const own = same.find(({ name }) => name === pipeline.name);
      if (own && !(sameGrid(own, { by, zone, column }) && sameScope(own.scope, scope))) await takeGrid(session, target);
      await session.query(
        `INSERT INTO repave.pipeline AS p (name, target, partition_column, by, zone, fingerprint, start, scope, after)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (name) DO UPDATE
            SET target = excluded.target, partition_column = excluded.partition_column, by = excluded.by, zone = excluded.zone,
                scope = excluded.scope, fingerprint = excluded.fingerprint, start = excluded.start, after = excluded.after, registered_at = excluded.registered_at,
                since = CASE WHEN p.fingerprint = excluded.fingerprint THEN p.since ELSE excluded.since END`,
        [
          pipeline.name,
          target.name,
          column,
          by,
          zone,
          pipeline.fingerprint,
          pipeline.start ?? null,
          JSON.stringify(scope),
          pipeline.after ?? [],
        ],
      );
      await commit(session);
      return carried;
    });
  } catch (error) {
    if (sqlstate(error) !== '55P03') throw toFailure(error);
    throw new Failure(
      'Conflict',
      `The calendar, scope or name of ${pipeline.name} is another now, and fills of ${tableText(pipeline.target)} that run, or a worker that starts, still go by the old. It is tried again.`,
      { sqlstate: '55P03', retryAfterMs: 10_000 },
    );
  }
}

/** Judged under the registry's lock, since workers of two projects may register at once, each by what it knew of the other. */
function refuseCircle(pipeline: Pipeline, registered: readonly Ordered[]): void {
  const all = new Map([...registered, pipeline].map((each) => [each.name, each]));
  const circle = circleOf(pipeline.name, all);
  if (circle) throw new Failure('InvalidPipeline', `pipeline ${pipeline.name}: ${circleProblem(circle)}`);
}

/** Another pipeline of the same target, as its worker has registered it. */
type Registered = Pick<RegisteredPipeline, 'name' | 'by' | 'zone' | 'column' | 'scope'>;

/** Two pipelines share a target only by one grid and where no row can be both's. */
function refuseRival(pipeline: Pipeline, target: Target, scope: Scope, other: Registered): void {
  const grid = sameGrid(other, { ...pipeline.partition });
  if (grid && disjointScopes(scope, other.scope)) return;
  const scoped = Object.keys(scope).length > 0 || Object.keys(other.scope).length > 0;
  const reason = !scoped
    ? 'two pipelines would overwrite each other'
    : grid
      ? `its scope (${describeScope(other.scope)}) and that of ${pipeline.name} (${describeScope(scope)}) are not disjoint, which takes a column of both with different values`
      : `its partitions are by ${other.by} in ${other.zone} of the column ${JSON.stringify(other.column)}, and pipelines of one target need the same ones`;
  throw new Failure(
    'InvalidPipeline',
    `${target.name} is already the target of ${other.name}: ${reason}. If ${other.name} is gone: DELETE FROM repave.pipeline WHERE name = '${other.name}'.`,
  );
}

function sameGrid(
  a: Pick<Registered, 'by' | 'zone' | 'column'>,
  b: Pick<Registered, 'by' | 'zone' | 'column'>,
): boolean {
  return a.by === b.by && a.zone === b.zone && a.column === b.column;
}

function sameScope(a: Scope, b: Scope): boolean {
  const columns = Object.keys(a);
  return columns.length === Object.keys(b).length && columns.every((column) => a[column] === b[column]);
}

/** Whether a pipeline is registered by this name: one that was carried over to another is no more. */
export async function isRegistered(database: Database, name: string): Promise<boolean> {
  return (await database.query('SELECT FROM repave.pipeline WHERE name = $1', [name])).length > 0;
}

/** Every registered pipeline, by name. */
export async function registeredPipelines(database: Database): Promise<RegisteredPipeline[]> {
  return database.query<RegisteredPipeline>(
    `SELECT name, target, partition_column AS "column", by, zone, scope, fingerprint, start, after, registered_at AS "registeredAt", since
       FROM repave.pipeline ORDER BY name`,
  );
}
