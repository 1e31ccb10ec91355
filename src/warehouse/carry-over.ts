import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { takeGrid } from './lock.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/** Rows of the ledger that have gone from a pipeline's former name to its own. */
export interface CarriedOver {
  readonly former: string;
  readonly partitions: number;
  /** Ids of the former name's backfills that have not said how they ended, the newest first: at most 10. */
  readonly unfinished: readonly string[];
}

/**
 * SQL for the names under which the ledger has the fills and failures of a run that was planned as the pipeline `$1`: that,
 * and where it is registered no more any other, since it may have been carried over.
 */
export const NAMES_NOW = `ARRAY(SELECT $1::pg_catalog.text UNION ALL
                          SELECT name FROM repave.pipeline WHERE NOT EXISTS (SELECT FROM repave.pipeline WHERE name = $1))`;

/** What the ledger has under a pipeline's former name. */
interface FormerLedger {
  /** The target of the pipeline that is registered by that name. */
  readonly target: string | null;
  readonly partitions: number;
  /** Whether the new name has rows of its own. */
  readonly taken: boolean;
}

/**
 * Carries the ledger of the pipeline's former name over, in the transaction that registers it and under the registry's lock:
 * what was filled stays filled. Waits until no fill of the target runs. Undefined where there is nothing to carry: no such
 * name, one that has another target now, or one that was carried over before.
 *
 * Throws `InvalidPipeline` where the ledger has rows of both names.
 */
export async function carryOver(
  session: Session,
  pipeline: Pipeline,
  target: Target,
): Promise<CarriedOver | undefined> {
  const { name, formerly: former } = pipeline;
  if (former === undefined) return undefined;
  const [ledger] = await session.rows<FormerLedger>(FORMER_LEDGER, [former, name]);
  if (!ledger || !carries(ledger, target.name)) return undefined;
  if (ledger.taken) {
    if (ledger.target === null || ledger.partitions === 0) return undefined;
    throw new Failure(
      'InvalidPipeline',
      `The ledger has rows of ${name} and of ${former}, its \`formerly\`, and they cannot be told apart once they are together. ` +
        `To go on with those of ${name}: take \`formerly\` out of its file, and DELETE FROM repave.pipeline WHERE name = '${former}'.`,
    );
  }
  await takeGrid(session, target);
  const unfinished = await session.rows<{ id: string }>(
    'SELECT id FROM repave.backfill WHERE pipeline = $1 AND outcome IS NULL ORDER BY started_at DESC LIMIT 10',
    [former],
  );
  const [row] = await session.rows<{ carried: number }>(
    'SELECT repave.carry_over($1, $2)::pg_catalog.float8 AS carried',
    [former, name],
  );
  // What came after it comes after it still, until the worker that serves that has read its file.
  await session.query(
    'UPDATE repave.pipeline SET after = pg_catalog.array_replace(after, $1, $2) WHERE $1 OPERATOR(pg_catalog.=) ANY (after)',
    [former, name],
  );
  return { former, partitions: row?.carried ?? 0, unfinished: unfinished.map(({ id }) => id) };
}

/** How many partitions a worker will carry over once it registers the pipeline onto the target of that full name; writes nothing. */
export async function formerRows(
  database: Database,
  { name, formerly }: Pick<Pipeline, 'name' | 'formerly'>,
  target: string,
): Promise<number> {
  if (formerly === undefined) return 0;
  const [ledger] = await database.query<FormerLedger>(FORMER_LEDGER, [formerly, name]);
  return ledger && carries(ledger, target) && !ledger.taken ? ledger.partitions : 0;
}

function carries({ target, partitions }: FormerLedger, own: string): boolean {
  return target === null ? partitions > 0 : target === own;
}

const FORMER_LEDGER = `
  SELECT (SELECT target FROM repave.pipeline WHERE name = $1) AS target,
         (SELECT pg_catalog.count(*)::pg_catalog.float8 FROM repave.partition WHERE pipeline = $1) AS partitions,
         EXISTS (SELECT FROM repave.partition WHERE pipeline = $2)
           OR EXISTS (SELECT FROM repave.fill WHERE pipeline = $2) AS taken`;
