import { type Grid, isGranularity } from '../calendar/calendar.js';
import { overlapping } from '../calendar/overlap.js';
import { Failure } from '../failure.js';
import type { Database } from './database.js';
import { type RegisteredPipeline, registeredPipelines } from './ledger.js';
import type { KeySpan } from './partition-states.js';

/** A pipeline whose partitions come before another's, as workers have registered it. */
export interface Upstream {
  readonly name: string;
  readonly grid: Grid;
  readonly start: string | null;
}

/** What a pipeline's partitions come after. */
export interface ComesAfter {
  /** Of the pipeline itself. */
  readonly grid: Grid;
  /** In the order of its `after`; those that nobody has registered are left out. */
  readonly upstreams: readonly Upstream[];
}

/** What a pipeline comes after, by the ledger; undefined, and nothing asked of a database, where that is none. */
export async function comesAfter(
  database: Database,
  pipeline: { readonly partition: Grid; readonly after?: readonly string[] },
): Promise<ComesAfter | undefined> {
  if (!pipeline.after?.length) return undefined;
  return comesAfterOf(pipeline.partition, pipeline.after, await registeredPipelines(database));
}

/** The same by pipelines that were read before. */
export function comesAfterOf(
  { by, zone }: Grid,
  after: readonly string[],
  registered: readonly RegisteredPipeline[],
): ComesAfter | undefined {
  if (after.length === 0) return undefined;
  const upstreams = after.flatMap((name) => registered.find((pipeline) => pipeline.name === name) ?? []);
  return { grid: { by, zone }, upstreams: upstreams.map((one) => ({ ...one, grid: gridOf(one) })) };
}

/** The calendar of a registered pipeline. Throws `InvalidInput` for a unit that a newer version has registered. */
export function gridOf({ name, by, zone }: Pick<RegisteredPipeline, 'name' | 'by' | 'zone'>): Grid {
  if (isGranularity(by)) return { by, zone };
  throw new Failure(
    'InvalidInput',
    `The ledger has ${name} by ${by}, which this version does not know. Upgrade Repave here.`,
  );
}

/** A pipeline's partitions that overlap some of another's calendar: none where `from` comes after `to`, before its `start`. */
export function overlapWith({ grid, start }: Pick<Upstream, 'grid' | 'start'>, other: Grid, span: KeySpan): KeySpan {
  const { from, to } = overlapping(grid, other, span);
  return { from: start !== null && start > from ? start : from, to };
}

/** What {@link upstreamDigests} gives where nothing that comes before is filled: the digest of no text. */
const OF_NOTHING = 'e3b0c44298fc1c149afbf4c8996fb924';

/**
 * For each of some partitions a digest of the fills that stand now in the partitions it comes after: it stays the same until one
 * of those is filled again, and not merely found unchanged. No name and no time is in it. By one statement, whose snapshot it is.
 */
export async function upstreamDigests(
  database: Database,
  { grid, upstreams }: ComesAfter,
  keys: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const overlaps = keys.flatMap((key) =>
    upstreams.map((upstream, place) => {
      return { key, place, upstream: upstream.name, ...overlapWith(upstream, grid, { from: key, to: key }) };
    }),
  );
  const rows = await database.query<{ key: string; digest: string }>(
    // A fill of an older version has no id in repave.partition, or leaves that of the one before there: then its own entry says it, or
    // its run and fence, which come once too.
    `SELECT o.key,
            pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(coalesce(pg_catalog.string_agg(
              coalesce(later.id::pg_catalog.text, p.fill::pg_catalog.text, p.run || ' ' || p.fence), ',' ORDER BY o.place, p.key COLLATE "C"), ''), 'UTF8')), 'hex'), 32) AS digest
       FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.int4[]), pg_catalog.unnest($3::pg_catalog.text[]),
                       pg_catalog.unnest($4::pg_catalog.text[]), pg_catalog.unnest($5::pg_catalog.text[])) AS o(key, place, upstream, first, last)
       LEFT JOIN LATERAL (
            SELECT key, fill, run, fence FROM repave.partition
             WHERE pipeline = o.upstream AND key COLLATE "C" >= o.first AND key COLLATE "C" <= o.last AND filled_at IS NOT NULL) p ON true
       LEFT JOIN LATERAL (
            SELECT f.id FROM repave.fill f
             WHERE f.pipeline = o.upstream AND f.key = p.key AND f.id > coalesce(p.fill, 0) AND NOT f.unchanged
             ORDER BY f.id DESC LIMIT 1) later ON true
      GROUP BY o.key`,
    [
      overlaps.map(({ key }) => key),
      overlaps.map(({ place }) => place),
      overlaps.map(({ upstream }) => upstream),
      overlaps.map(({ from }) => from),
      overlaps.map(({ to }) => to),
    ],
  );
  const digests = new Map(rows.map(({ key, digest }) => [key, digest]));
  return new Map(keys.map((key) => [key, digests.get(key) ?? OF_NOTHING]));
}
