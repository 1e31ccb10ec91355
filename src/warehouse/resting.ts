import { FAILURES } from '../contract.js';
import type { Database } from './database.js';

/** Failure types that pass by themselves: what the world does, and what another run was at. By those no partition rests. */
const PASSING: readonly string[] = [
  'Busy',
  'StaleAttempt',
  ...Object.entries(FAILURES).flatMap(([type, retried]) => (retried === 'world' ? [type] : [])),
];

/** A failed partition that is not tried again for now: it has failed in the same way too often. */
export interface RestingPartition {
  readonly key: string;
  /** The way of its last failure. */
  readonly type: string;
  /** How often it has failed in that way. */
  readonly tries: number;
}

/**
 * SQL: how often the partition `p` of the pipeline `r` has failed as `$type` for good, since it was last filled and since the
 * pipeline's fingerprint was first registered. By its newest fill, as `p.filled_at` is gone where `verify` has found its rows
 * gone. Looked up partition by partition, by the indexes of its failures and its fills.
 */
function failuresAs(type: string, upTo = ''): string {
  return `(SELECT pg_catalog.count(*)::pg_catalog.float8 FROM repave.failure x
            WHERE x.pipeline = p.pipeline AND x.key = p.key AND x.type = ${type} AND x.failed_at >= r.since
              AND x.failed_at > coalesce((SELECT f.filled_at FROM repave.fill f WHERE f.pipeline = p.pipeline AND f.key = p.key
                                           ORDER BY f.id DESC LIMIT 1), '-infinity') ${upTo})`;
}

/**
 * Of these partitions, in the order of time, those that rest: their last outcome is a failure, and they have failed in the same
 * way `tries` times or more since their last committed fill and under the fingerprint that is registered now. Failures of
 * another kind in between take nothing away: a partition that fails in turns rests too. None rests by a failure that passes by
 * itself, such as `SourceNotReady`: trying it again is not in vain.
 */
export async function restingPartitions(
  database: Database,
  pipeline: string,
  keys: readonly string[],
  tries: number,
): Promise<RestingPartition[]> {
  return database.query<RestingPartition>(
    `SELECT * FROM (
       SELECT p.key, p.failure_type AS type, ${failuresAs('p.failure_type')} AS tries
         FROM repave.partition p JOIN repave.pipeline r ON r.name = p.pipeline
        WHERE p.pipeline = $1 AND p.key = ANY ($2) AND p.outcome = 'failed' AND p.failure_type <> ALL ($4)) f
      WHERE tries >= $3 ORDER BY key COLLATE "C"`,
    [pipeline, keys, tries, PASSING],
  );
}

/** A partition with which a backfill has given up, as it failed there last. */
export interface GivenUp extends RestingPartition {
  readonly message: string;
}

/**
 * Partitions that have come to rest by a backfill, in the order of time: by its failure they have failed in the same way `tries`
 * times or more, as {@link restingPartitions} counts, and they are failed still. What later runs did to them counts for nothing.
 */
export async function givenUpBy(database: Database, backfill: string, tries: number): Promise<GivenUp[]> {
  return database.query<GivenUp>(
    `SELECT * FROM (
       SELECT p.key, f.type, f.message, ${failuresAs('f.type', 'AND x.id <= f.id')} AS tries
         FROM (SELECT DISTINCT ON (key) id, pipeline, key, type, message FROM repave.failure
                WHERE backfill = $1 ORDER BY key, id DESC) f
         JOIN repave.partition p ON p.pipeline = f.pipeline AND p.key = f.key AND p.outcome = 'failed'
         JOIN repave.pipeline r ON r.name = p.pipeline
        WHERE f.type <> ALL ($3)) g
      WHERE tries >= $2 ORDER BY key COLLATE "C"`,
    [backfill, tries, PASSING],
  );
}
