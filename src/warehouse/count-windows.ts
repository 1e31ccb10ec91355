import type { Window } from '../calendar/calendar.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { ONCE, rowsDigest, rowText } from './digest.js';
import { quoted } from './identifier.js';
import { bounds } from './partition-type.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import { windowCondition } from './window-condition.js';

/** What one window holds. */
export interface MeasuredWindow {
  readonly rows: number;
  /** {@link rowsDigest} of its rows by each list of columns that was asked for; absent where it has no rows. */
  readonly digests?: readonly string[];
}

/**
 * How many of the pipeline's rows each window holds, in the windows' order: neighbours, each one's end the next one's start.
 * One pass over their rows, or over the table where no index leads to them.
 */
export async function countWindows(
  session: Session,
  pipeline: Pipeline,
  target: Target,
  windows: readonly Window[],
): Promise<number[]> {
  return (await measureWindows(session, pipeline, target, windows, [])).map(({ rows }) => rows);
}

/** {@link countWindows}, in the same pass with the digests of some lists of the table's columns. */
export async function measureWindows(
  session: Session,
  pipeline: Pipeline,
  target: Target,
  windows: readonly Window[],
  columnLists: readonly (readonly string[])[],
): Promise<MeasuredWindow[]> {
  const [first, last] = [windows[0], windows.at(-1)];
  if (!first || !last) return [];
  const type = `pg_catalog.${target.partitionType}`;
  const { table, condition, values } = windowCondition(pipeline, target, spanning(first, last));
  const lower = windows.map((window) => bounds(window, target.partitionType)[0]);
  const column = quoted(pipeline.partition.column);
  const measured = await session.rows<{ place: number; rows: number; digests: string[] }>(
    `SELECT place, pg_catalog.count(*)::pg_catalog.float8 AS rows,
            ARRAY[${columnLists.map((_, i) => rowsDigest(`text${i}`)).join(', ')}]::pg_catalog.text[] AS digests
       FROM (SELECT pg_catalog.width_bucket(${column}::${type}, $${values.length + 1}::${type}[]) AS place${columnLists.map((columns, i) => `, ${rowText(columns)} AS text${i}`).join('')}
               FROM ${table} WHERE ${condition}${columnLists.length > 0 ? ` ${ONCE}` : ''}) r
      GROUP BY place`,
    [...values, lower],
  );
  const byPlace = new Map(measured.map(({ place, ...window }) => [place, window]));
  return windows.map((_, i) => byPlace.get(i + 1) ?? { rows: 0 });
}

/**
 * The oldest instant of the pipeline's rows, `2024-02-29T13:00:00Z`, as the session's time zone reads it; undefined where it
 * has none in the years that have keys.
 */
export async function oldestRow(session: Session, pipeline: Pipeline, target: Target): Promise<string | undefined> {
  const { table, condition, values } = windowCondition(pipeline, target, ALL_TIME);
  const [row] = await session.rows<{ oldest: string | null }>(
    `SELECT pg_catalog.to_char(pg_catalog.min(${quoted(pipeline.partition.column)})::pg_catalog.timestamptz AT TIME ZONE 'UTC',
                               'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS oldest
       FROM ${table} WHERE ${condition}`,
    values,
  );
  return row?.oldest ?? undefined;
}

/**
 * How many of the pipeline's rows no window between two has, both included: before the first, after the last, infinitely far
 * away, or without a date.
 */
export async function rowsOutside(
  session: Session,
  pipeline: Pipeline,
  target: Target,
  first: Window,
  last: Window,
): Promise<number> {
  const { table, condition, time, values } = windowCondition(pipeline, target, spanning(first, last));
  const column = quoted(pipeline.partition.column);
  const type = `pg_catalog.${target.partitionType}`;
  const scope = condition.slice(time.length);
  const [row] = await session.rows<{ rows: number }>(
    // Each side by itself, so that an index on the column leads to the few rows there are.
    `SELECT pg_catalog.count(*)::pg_catalog.float8 AS rows
       FROM ${table} WHERE (${column} < $1::${type} OR ${column} >= $2::${type} OR ${column} IS NULL)${scope}`,
    values,
  );
  return row?.rows ?? 0;
}

/** The years that keys can name, but for their first and last days, which another zone may put into another year. */
export const ALL_TIME: Window = {
  key: '',
  number: 0,
  start: '1000-01-02T00:00:00Z',
  end: '9999-12-30T00:00:00Z',
  date: '1000-01-02',
  endDate: '9999-12-30',
  localStart: '1000-01-02T00:00:00',
  localEnd: '9999-12-30T00:00:00',
};

/** One window in place of neighbours. */
function spanning(first: Window, last: Window): Window {
  return { ...first, end: last.end, endDate: last.endDate, localEnd: last.localEnd };
}
