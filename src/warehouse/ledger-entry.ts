import { Failure } from '../failure.js';
import type { Scope } from '../pipeline/pipeline.js';
import type { CheckOutcome, FillOutcome, FillRequest } from './fill-request.js';
import type { Session } from './session.js';

/** What a fill looks at under the lock, in a statement of its own. */
export interface Look {
  /** This run's committed fill, if an earlier attempt had one. */
  readonly own: FillOutcome | undefined;
  /** The fence of this run's newest claim; undefined where it has none, or the run has ended. */
  readonly fence: number | undefined;
  /** The newest committed fill of the partition, by any run: 0 where there is none. */
  readonly latest: number;
  /** The target's oid as its name resolves now. */
  readonly oid: number | null;
  /** A registered pipeline that fills the same target by another grid or a scope that is not disjoint; or this one's own row, where that says another grid or scope. */
  readonly rival: string | undefined;
}

/** Looks. Also raises the lock timeout from here on: what the fill now waits for is the table itself. */
export async function look(
  session: Session,
  request: FillRequest,
  target: { readonly name: string; readonly written: string; readonly scope: Scope },
  lockTimeoutMs: number,
): Promise<Look> {
  const { pipeline, window, owner } = request;
  const { column, by, zone } = pipeline.partition;
  const [row] = await session.rows<{
    fence: number | null;
    latest: number;
    oid: number | null;
    rival: string | null;
    own: {
      fence: number;
      rows: number;
      deleted: number;
      seconds: number;
      warnings: string[];
      unchanged: boolean;
    } | null;
  }>(
    `SELECT pg_catalog.set_config('lock_timeout', $1, true),
            (SELECT fence::pg_catalog.float8 FROM repave.claim
              WHERE pipeline = $2 AND key = $3 AND run = $4 AND NOT closed) AS fence,
            (SELECT coalesce(pg_catalog.max(id), 0)::pg_catalog.float8 FROM repave.fill WHERE pipeline = $2 AND key = $3) AS latest,
            pg_catalog.to_regclass($5)::pg_catalog.oid::pg_catalog.int8::pg_catalog.float8 AS oid,
            (SELECT pg_catalog.min(pg_catalog.format('%s (by %s, %s, column %s%s)', name, by, zone, partition_column,
                                                       CASE WHEN scope <> '{}' THEN ', scope ' || scope::pg_catalog.text END))
               FROM repave.pipeline p
              WHERE target = $6
                AND ((by, zone, partition_column) IS DISTINCT FROM ($7, $8, $9)
                     OR CASE WHEN name = $2 THEN scope <> $10::pg_catalog.jsonb ELSE NOT ${disjoint('p.scope', '$10')} END)) AS rival,
            (SELECT pg_catalog.json_build_object('fence', fence, 'rows', rows_inserted, 'deleted', rows_deleted,
                                                 'seconds', seconds, 'warnings', warnings, 'unchanged', unchanged)
               FROM repave.fill WHERE pipeline = $2 AND key = $3 AND run = $4) AS own`,
    [
      String(lockTimeoutMs),
      pipeline.name,
      window.key,
      owner.run,
      target.written,
      target.name,
      by,
      zone,
      column,
      JSON.stringify(target.scope),
    ],
  );
  return {
    own: row?.own ? committed(row.own) : undefined,
    fence: row?.fence ?? undefined,
    latest: row?.latest ?? 0,
    oid: row?.oid ?? null,
    rival: row?.rival ?? undefined,
  };
}

/** A committed fill that this call has found. */
export function committed({ unchanged, ...fill }: Omit<FillOutcome, 'found'>): FillOutcome {
  return { ...fill, ...(unchanged ? { unchanged } : {}), found: true };
}

/** {@link disjointScopes} in SQL, of two canonical scopes as jsonb. */
function disjoint(a: string, b: string): string {
  return `EXISTS (SELECT FROM pg_catalog.jsonb_each_text(${a}::pg_catalog.jsonb) x JOIN pg_catalog.jsonb_each_text(${b}::pg_catalog.jsonb) y ON y.key = x.key
                       WHERE x.value <> y.value)`;
}

export interface Entry {
  readonly fence: number;
  readonly deleted: number;
  readonly inserted: number;
  readonly unchanged: boolean;
  readonly seconds: number;
  readonly checks: readonly CheckOutcome[];
  readonly warnings: readonly string[];
  /** Absent: the pipeline keeps none. */
  readonly checksum?: string;
}

/**
 * The guard: writes the ledger's row from my claim, which goes, where its fence is still mine and the attempt's deadline has
 * not passed. It is the last statement before COMMIT: "a newer attempt has begun" and "an older one commits" are then one
 * order, and the claim's row is held for one round trip. Throws `StaleAttempt` where the claim is no longer mine.
 */
export async function writeEntry(session: Session, request: FillRequest, entry: Entry): Promise<void> {
  const { pipeline, window, owner, attempt } = request;
  const written = await session.rows(
    `WITH mine AS (
       DELETE FROM repave.claim
        WHERE pipeline = $1 AND key = $2 AND run = $3 AND fence = $4
          AND NOT closed AND deadline > pg_catalog.clock_timestamp()
       RETURNING fence
     ), entry AS (
       INSERT INTO repave.fill (pipeline, key, run, fence, activity, attempt, window_start, window_end, fingerprint,
                                rows_deleted, rows_inserted, seconds, checks, warnings, unchanged, backfill, started_by,
                                source_version, upstream, checksum)
       SELECT $1, $2, $3, fence, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20 FROM mine
       RETURNING *
     )
     INSERT INTO repave.partition AS p (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence, fill,
                                        source_version, upstream)
     SELECT pipeline, key, 'filled', rows_inserted, fingerprint, filled_at, run, attempt, fence, id,
            source_version, upstream FROM entry
     ON CONFLICT (pipeline, key) DO UPDATE
        SET outcome = 'filled', rows = excluded.rows, fingerprint = excluded.fingerprint, filled_at = excluded.filled_at,
            run = excluded.run, attempt = excluded.attempt, fence = excluded.fence,
            -- What comes after a fill that wrote nothing has read the rows that stand; or those that verify has found there.
            fill = CASE WHEN $15 AND p.found_at IS NULL THEN p.fill ELSE excluded.fill END,
            source_version = excluded.source_version, upstream = excluded.upstream,
            found_at = NULL, found_ledger_rows = NULL, found_table_rows = NULL,
            failed_at = NULL, failure_type = NULL, failure_message = NULL
     RETURNING true`,
    [
      pipeline.name,
      window.key,
      owner.run,
      entry.fence,
      owner.activity,
      attempt.number,
      window.start,
      window.end,
      // A fingerprint of no pipeline, so that the partition is outdated, and never complete, until it is filled again.
      request.unfinished ? `${pipeline.fingerprint} unfinished` : pipeline.fingerprint,
      entry.deleted,
      entry.inserted,
      entry.seconds,
      JSON.stringify(entry.checks),
      entry.warnings,
      entry.unchanged,
      request.backfill ?? null,
      request.startedBy ?? null,
      request.origin?.sourceVersion ?? null,
      request.origin?.upstream ?? null,
      entry.checksum ?? null,
    ],
  );
  if (written.length === 0) {
    throw new Failure(
      'StaleAttempt',
      `A newer attempt of ${pipeline.name} ${window.key} began, its run was ended, or this attempt’s time was up. Nothing was written.`,
    );
  }
}
